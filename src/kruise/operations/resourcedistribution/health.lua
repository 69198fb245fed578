local wanted, copied = number("status", "desired"), number("status", "succeeded")
if not is_observed() then
  return health("Progressing", "waiting for the newest spec to be observed")
end
if copied < wanted then
  return health("Progressing", copied .. " of " .. wanted .. " namespaces have the copy")
end
return health("Healthy", wanted .. " namespaces have the copy")
