"""Call EC2: the only room that imports boto3."""
