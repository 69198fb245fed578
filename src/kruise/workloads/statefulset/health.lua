local rolling = at(obj, "spec", "updateStrategy", "rollingUpdate") or {}
local wanted = at(obj, "spec", "replicas") or 1
local partition = number("spec", "updateStrategy", "rollingUpdate", "partition")
return workload({
  wanted = wanted,
  kept = partition < wanted and partition or wanted,
  updated = number("status", "updatedReplicas"),
  ready = number("status", "readyReplicas"),
  available = number("status", "availableReplicas"),
  total = number("status", "replicas"),
  min_ready = number("spec", "updateStrategy", "rollingUpdate", "minReadySeconds"),
  paused = rolling.paused == true,
})
