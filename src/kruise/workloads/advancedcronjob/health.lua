if (at(obj, "status", "type") or "") == "" then
  return waiting({paused = at(obj, "spec", "paused") == true}, "waiting to be observed")
end
local last = at(obj, "status", "lastScheduleTime")
local told = last and "the last run is that of " .. last or "it has not run yet"
return settled({wanted = 0, updated = 0, paused = at(obj, "spec", "paused") == true}, told)
