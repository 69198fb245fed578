-- Health of an object of PyKruise, for Argo CD. What follows for each kind is what `kruise rollout status` says of it.
-- Argo CD gives scripts neither the string library nor the mathematical one.

local function at(found, ...)
  for _, name in ipairs({...}) do
    if type(found) ~= "table" then
      return nil
    end
    found = found[name]
  end
  return found
end

local function number(...)
  local found = at(obj, ...)
  return type(found) == "number" and found or 0
end

local function list(...)
  local found = at(obj, ...)
  return type(found) == "table" and found or {}
end

-- A share of the total: a number, or whole percents, rounded up or down. What is neither counts nothing.
local function share(value, total, up)
  if type(value) == "number" then
    return value
  end
  for percent = 0, 100 do
    if value == percent .. "%" then
      local product = percent * total
      local whole = (product - product % 100) / 100
      return (up and product % 100 > 0) and whole + 1 or whole
    end
  end
  return 0
end

local function between(low, value, high)
  if value > high then
    value = high
  end
  return value < low and low or value
end

local function pods(count)
  return count == 1 and "1 pod" or count .. " pods"
end

-- The message of a condition that stands so; nil: there is none.
local function condition(kind, status, reason)
  for _, one in ipairs(list("status", "conditions")) do
    if one.type == kind and one.status == status and (reason == nil or one.reason == reason) then
      return one.message or ""
    end
  end
  return nil
end

local function is_observed()
  return number("status", "observedGeneration") >= number("metadata", "generation")
end

local function health(status, message)
  return {status = status, message = message ~= "" and message or status}
end

local function waiting(seen, message)
  if seen.paused then
    return health("Suspended", "paused: " .. message)
  end
  return health("Progressing", message)
end

-- The end of a rollout; one that keeps pods at an older template is no healthy one.
local function settled(seen, message)
  if seen.updated < seen.wanted then
    return health("Suspended", pods(seen.wanted - seen.updated) .. " of " .. seen.wanted .. " keep what they had")
  end
  if seen.paused then
    return health("Suspended", "paused: " .. message)
  end
  return health("Healthy", message)
end

-- A workload whose pods are made anew or updated; `kept` stay at an older template.
local function workload(seen)
  local by_hand = at(obj, "spec", "updateStrategy", "type") == "OnDelete"
  local expected = seen.wanted - seen.kept
  if not is_observed() then
    return waiting(seen, "waiting for the newest spec to be observed")
  end
  if by_hand and seen.updated < seen.total then
    return health("Suspended", pods(seen.total - seen.updated) .. " keep an older template until somebody deletes them")
  end
  if condition("Progressing", "False", "ProgressDeadlineExceeded") then
    return health("Degraded", "it exceeded its progress deadline")
  end
  local stop = condition("FailureBudgetExceeded", "True")
  if stop then
    return health("Degraded", "it exceeded its failure budget: " .. stop)
  end
  if seen.updated < expected and not by_hand then
    return waiting(seen, seen.updated .. " of " .. pods(expected) .. " updated")
  end
  if seen.total > seen.wanted and not seen.per_node then
    return waiting(seen, "waiting for " .. pods(seen.total - seen.wanted) .. " to be deleted")
  end
  if seen.ready < seen.wanted then
    return waiting(seen, "waiting for " .. pods(seen.wanted - seen.ready) .. " to be ready")
  end
  if seen.available < seen.wanted and seen.min_ready > 0 then
    return waiting(seen, "waiting for " .. pods(seen.wanted - seen.available) .. " to be available")
  end
  return settled(seen, pods(seen.updated) .. " updated and ready")
end

