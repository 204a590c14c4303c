"""What a user sees while something runs: a live region, plain lines, and TensorBoard."""
