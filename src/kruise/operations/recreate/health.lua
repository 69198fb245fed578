local names, wanted, done = {}, 0, 0
for _, one in ipairs(list("spec", "containers")) do
  local name = tostring(one.name)
  if not names[name] then
    names[name], wanted = true, wanted + 1
  end
end
for _, one in ipairs(list("status", "containerRecreateStates")) do
  if one.phase == "Succeeded" then
    done = done + 1
  end
end
local counts = done .. " of " .. wanted .. " containers have been recreated"
if at(obj, "status", "phase") ~= "Completed" then
  return health("Progressing", counts)
end
local message = at(obj, "status", "message") or ""
if message ~= "" or done < wanted then
  return health("Degraded", message ~= "" and message or counts)
end
return health("Healthy", counts)
