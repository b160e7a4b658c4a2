"""CSV lines and plots of the queue, and plots of prices."""
