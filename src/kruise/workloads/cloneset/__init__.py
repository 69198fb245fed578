"""CloneSet: interchangeable pods, managed directly, updated in place where possible."""
