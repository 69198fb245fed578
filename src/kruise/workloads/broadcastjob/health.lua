local phase = at(obj, "status", "phase") or ""
local desired, active = number("status", "desired"), number("status", "active")
local succeeded, failed = number("status", "succeeded"), number("status", "failed")
local counts = succeeded .. " succeeded, " .. failed .. " failed, " .. active .. " active of " .. desired .. " nodes"
if phase == "failed" then
  return health("Degraded", condition("Failed", "True") or counts)
end
if phase == "paused" then
  return health("Suspended", "paused: " .. counts)
end
local never = at(obj, "spec", "completionPolicy", "type") == "Never"
local at_rest = phase ~= "" and never and desired > 0 and active == 0 and succeeded + failed >= desired
if phase == "completed" or at_rest then
  return health("Healthy", counts)
end
return health("Progressing", counts)
