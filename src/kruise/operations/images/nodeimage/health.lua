local wanted = 0
for _, entry in pairs(list("spec", "images")) do
  wanted = wanted + #(entry.tags or {})
end
local there, failed = number("status", "succeeded"), number("status", "failed")
if there + failed < wanted then
  return health("Progressing", there .. " of " .. wanted .. " images are there")
end
if failed > 0 then
  return health("Degraded", failed .. " of " .. wanted .. " images could not be pulled")
end
return health("Healthy", "the node has what it is asked for")
