local function whole(value)
  return type(value) == "number" and value or 0
end
local sum, kept, laggards = 0, 0, ""
for _, one in ipairs(list("status", "subsetStatuses")) do
  local allocated = whole(one.allocatedReplicas or one.replicas)
  sum, kept = sum + allocated, kept + whole(one.partition)
  if whole(one.readyReplicas) < allocated then
    laggards = laggards .. " (subset " .. tostring(one.name) .. ")"
  end
end
local wanted = at(obj, "spec", "replicas") or sum
local updated, ready = number("status", "updatedReplicas"), number("status", "readyReplicas")
local total, seen = number("status", "replicas"), {wanted = wanted, updated = updated, paused = false}
local expected = wanted > kept and wanted - kept or 0
if not is_observed() then
  return waiting(seen, "waiting for the newest spec to be observed")
end
for _, kind in ipairs({"SubsetProvisioned", "SubsetUpdated"}) do
  local refusal = condition(kind, "False")
  if refusal and refusal ~= "" then
    return health("Degraded", refusal)
  end
end
if updated < expected then
  return waiting(seen, updated .. " of " .. pods(expected) .. " updated" .. laggards)
end
local unready = updated - number("status", "updatedReadyReplicas")
if unready > 0 then
  return waiting(seen, "waiting for " .. pods(unready) .. " of the new template to be ready" .. laggards)
end
if total > wanted then
  return waiting(seen, "waiting for " .. pods(total - wanted) .. " to be deleted" .. laggards)
end
if ready < wanted then
  return waiting(seen, "waiting for " .. pods(wanted - ready) .. " to be ready" .. laggards)
end
return settled(seen, pods(updated) .. " updated and ready")
