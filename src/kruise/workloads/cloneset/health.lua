local rolling = at(obj, "spec", "updateStrategy", "rollingUpdate") or {}
local wanted = at(obj, "spec", "replicas") or 1
local kept = share(rolling.partition, wanted, true)
if type(rolling.partition) == "string" and rolling.partition ~= "100%" and wanted > 1 and kept >= wanted then
  kept = wanted - 1 -- at least one pod goes forward
end
return workload({
  wanted = wanted,
  kept = between(0, kept, wanted),
  updated = number("status", "updatedReplicas"),
  ready = number("status", "readyReplicas"),
  available = number("status", "availableReplicas"),
  total = number("status", "replicas"),
  min_ready = number("spec", "minReadySeconds"),
  paused = rolling.paused == true,
})
