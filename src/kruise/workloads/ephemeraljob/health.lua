local phase = at(obj, "status", "phase") or ""
local match = number("status", "match")
local succeeded, failed = number("status", "succeeded"), number("status", "failed")
local wanted = at(obj, "spec", "replicas") or match
local ended = (at(obj, "status", "completionTime") or "") ~= ""
local counts = succeeded .. " of " .. pods(wanted) .. " succeeded, " .. failed .. " failed"
if phase == "Succeeded" or (ended and condition("JobSucceeded", "True")) then
  return health("Healthy", counts)
end
if phase == "Failed" or ended then
  return health("Degraded", condition("JobFailed", "True") or counts)
end
if phase == "Error" then
  return health("Degraded", condition("JobError", "True") or "see its spec")
end
if phase ~= "" and match > 0 and failed > 0 and succeeded + failed == wanted then
  return health("Degraded", "it does not end: " .. counts)
end
return waiting({paused = at(obj, "spec", "paused") == true}, counts)
