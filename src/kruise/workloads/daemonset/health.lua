local rolling = at(obj, "spec", "updateStrategy", "rollingUpdate") or {}
local wanted = number("status", "desiredNumberScheduled")
local available = number("status", "numberAvailable")
return workload({
  wanted = wanted,
  kept = between(0, share(rolling.partition, wanted, false), wanted),
  updated = number("status", "updatedNumberScheduled"),
  ready = available,
  available = available,
  total = number("status", "currentNumberScheduled"),
  min_ready = 0,
  per_node = true,
  paused = rolling.paused == true,
})
