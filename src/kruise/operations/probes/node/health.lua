return health("Healthy", "it holds what the daemon of its node is asked")
