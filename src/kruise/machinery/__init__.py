"""What every controller stands on: codec, client, store, queue, controller, plan and apply."""
