local desired, failed = number("status", "desired"), number("status", "failed")
local succeeded, limit = number("status", "succeeded"), at(obj, "spec", "parallelism")
local seen = {paused = limit == 0 or limit == "0"}
if at(obj, "status", "startTime") == nil then
  return waiting(seen, "waiting for the job to begin")
end
local never = at(obj, "spec", "completionPolicy", "type") == "Never"
local at_rest = never and desired > 0 and succeeded + failed >= desired
if at(obj, "status", "completionTime") == nil and not at_rest then
  return waiting(seen, succeeded .. " of " .. desired .. " nodes have the image")
end
if failed > 0 then
  return health("Degraded", failed .. " of " .. desired .. " nodes failed")
end
return health("Healthy", "all " .. desired .. " nodes have the image")
