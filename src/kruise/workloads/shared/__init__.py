"""What several workload kinds need. Pure. Kinds import this, and not each other."""
