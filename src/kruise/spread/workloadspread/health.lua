if not is_observed() then
  return health("Progressing", "waiting for the newest spec to be observed")
end
for _, one in ipairs(list("status", "subsetStatuses")) do
  for _, found in ipairs(one.conditions or {}) do
    if found.type == "Schedulable" and found.status == "False" then
      return health("Progressing", "waiting for nodes that take pods of subset " .. tostring(one.name))
    end
  end
end
return health("Healthy", "every subset gets pods")
