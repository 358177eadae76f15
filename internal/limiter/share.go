package limiter

// Share is the part of the limit that each of that many daemons may give out on its own, so that all of them together stay
// within it: the quota and the burst divided, rounded down, but at least 1. What is 0 stays 0. replicas is at least 1.
func (l Limit) Share(replicas uint32) Limit {
	l.Quota, l.Burst = share(l.Quota, replicas), share(l.Burst, replicas)
	return l
}

func share(units, replicas uint32) uint32 {
	if units == 0 {
		return 0
	}
	return max(1, units/replicas)
}
