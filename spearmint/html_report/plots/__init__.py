"""The plots of a report, one in each module, and the data that they draw."""
