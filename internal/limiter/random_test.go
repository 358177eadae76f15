package limiter

import (
	"math"
	"math/rand/v2"
	"time"
)

// randomLimit draws quotas and windows over all magnitudes, within the bounds that Limit's tick guarantees.
func randomLimit(r *rand.Rand, a Algorithm) Limit {
	if a == CalendarWindow {
		c := Calendar{Period: Period(1 + r.IntN(4)), Zone: calendarZones[r.IntN(len(calendarZones))]}
		quota := uint32(magnitude(r, []int64{100, math.MaxUint32}[r.IntN(2)]))
		return Limit{Algorithm: a, Quota: quota, Window: c.Longest(), Calendar: c, Tick: time.Second}
	}
	tick := []int64{1, 1, 10, 100, 1000, 100_000}[r.IntN(6)]
	window := magnitude(r, 1<<30)
	if r.IntN(2) == 0 {
		window = 1 + r.Int64N(1000)
	}
	window = min(window, MaxWindow.Milliseconds()/tick)
	most := min(math.MaxUint32, (1<<51-1)/window)
	if a == SlidingLog {
		most = 2000
	}
	if r.IntN(2) == 0 {
		most = min(most, 1+r.Int64N(100))
	}
	l := Limit{
		Algorithm: a,
		Quota:     uint32(magnitude(r, most)),
		Window:    time.Duration(window*tick) * time.Millisecond,
		Tick:      time.Duration(tick) * time.Millisecond,
	}
	if a == TokenBucket {
		longest := float64(MaxBurstLifetime.Milliseconds()/tick) * float64(l.Quota) / float64(window)
		l.Burst = uint32(magnitude(r, int64(min(float64(most), longest))))
	}
	if r.IntN(50) == 0 {
		l.Quota, l.Burst = 0, 0
	}
	return l
}

// changed is the limit of the same bucket after a reload.
func changed(r *rand.Rand, l Limit) Limit {
	for {
		next := randomLimit(r, l.Algorithm)
		if l.Algorithm == CalendarWindow {
			return next
		}
		next.Window = min(next.Window/next.Tick, MaxWindow/l.Tick) * l.Tick
		if r.IntN(2) == 0 {
			next.Window = l.Window
		}
		next.Tick = l.Tick
		ticks := float64(next.WindowTicks())
		if float64(next.Burst)*ticks <= float64(MaxBurstLifetime/next.Tick)*float64(next.Quota) &&
			ticks*float64(max(next.Quota, next.Burst)) < 1<<51 {
			return next
		}
	}
}

var calendarZones = func() (zones []*time.Location) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Havana", "Asia/Kathmandu"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		zones = append(zones, zone)
	}
	return zones
}()

// magnitude is 1 … most, with all numbers of digits equally likely.
func magnitude(r *rand.Rand, most int64) int64 {
	if most <= 1 {
		return 1
	}
	return min(most, int64(math.Exp(r.Float64()*math.Log(float64(most)+1))))
}

// randomStart is a moment of this century, often one where the number of ticks wraps.
func randomStart(r *rand.Rand, tick int64) int64 {
	now := 1_700_000_000_000 + r.Int64N(1_000_000_000_000)
	if wrap := tick << 31; tick <= 100 && r.IntN(2) == 0 {
		now = now/wrap*wrap + (r.Int64N(200)-100)*tick
	}
	return now
}

// randomPause is the time between two takes in ms: none, a part of a window, more than one, or a step back.
func randomPause(r *rand.Rand, l Limit) int64 {
	window := l.Window.Milliseconds()
	switch r.IntN(40) {
	case 0:
		return window + r.Int64N(window+1)
	case 1:
		return 3*window + 5000
	case 2:
		return -r.Int64N(window/8 + 2)
	case 3:
		return -r.Int64N(3*window + 1)
	case 4, 5, 6, 7, 8, 9, 10, 11, 12:
		return 0
	case 13, 14, 15, 16:
		return r.Int64N(l.Tick.Milliseconds() + 1)
	}
	return r.Int64N(window/16 + 2)
}

func randomCost(r *rand.Rand, l Limit) uint32 {
	switch r.IntN(12) {
	case 0:
		return 0
	case 1:
		return l.Capacity() + uint32(r.IntN(2))
	case 2, 3, 4:
		return uint32(magnitude(r, int64(l.Capacity())))
	case 5, 6, 7:
		return l.Capacity()/16 + 1
	}
	return 1
}
