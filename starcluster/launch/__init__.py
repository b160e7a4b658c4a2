"""Plan a launch, check it against AWS, start its instances and wait for them."""
