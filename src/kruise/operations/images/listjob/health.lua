local desired, completed = number("status", "desired"), number("status", "completed")
local succeeded, limit = number("status", "succeeded"), at(obj, "spec", "parallelism")
local failed, seen = #list("status", "failedImageStatuses"), {paused = limit == 0 or limit == "0"}
if at(obj, "status", "startTime") == nil then
  return waiting(seen, "waiting for the job to begin")
end
local never = at(obj, "spec", "completionPolicy", "type") == "Never"
if at(obj, "status", "completionTime") == nil and not (never and completed >= desired) then
  return waiting(seen, succeeded .. " of " .. desired .. " images are on all nodes")
end
if failed > 0 then
  return health("Degraded", failed .. " of " .. desired .. " images failed")
end
return health("Healthy", "all " .. desired .. " images are on all nodes")
