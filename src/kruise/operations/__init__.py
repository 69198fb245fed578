"""Operations on what runs: images, containers, probes, shared configuration."""
