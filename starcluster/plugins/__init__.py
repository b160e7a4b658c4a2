"""Plugins that come with StarCluster; third parties' load in the same way."""
