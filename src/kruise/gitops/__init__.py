"""What GitOps tools must know of our kinds."""
