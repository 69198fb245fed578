local strategy = at(obj, "spec", "updateStrategy") or {}
local matched, updated = number("status", "matchedPods"), number("status", "updatedPods")
local ready, partition = number("status", "updatedReadyPods"), strategy.partition
local outside, stuck = number("status", "notSelectedPods"), number("status", "notUpgradablePods")
local kept = share(partition, matched, true)
if type(partition) == "string" and partition ~= "100%" and matched > 1 and kept == matched then
  kept = kept - 1 -- at least one pod goes forward
end
local expected = matched - outside - stuck - between(0, kept, matched)
expected = expected > 0 and expected or 0
local seen = {wanted = matched, updated = updated, paused = strategy.paused == true}
if not is_observed() then
  return waiting(seen, "waiting for the newest spec to be observed")
end
if strategy.type == "NotUpdate" then
  return settled(seen, pods(updated) .. " have the present content")
end
if number("status", "failureBudget", "failed") > 0 then
  return health("Degraded", "it exceeded its failure budget")
end
if updated < expected then
  return waiting(seen, updated .. " of " .. pods(expected) .. " updated")
end
if ready < updated then
  return waiting(seen, "waiting for " .. pods(updated - ready) .. " to be ready")
end
return settled(seen, pods(updated) .. " have the present content")
