if not is_observed() then
  return health("Progressing", "waiting for the newest spec to be observed")
end
return health("Healthy", "the newest spec is observed")
