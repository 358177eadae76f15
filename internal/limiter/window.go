package limiter

// position is where an instant lies among windows of one length that are aligned to the Unix epoch.
type position struct {
	index   uint32 // the window's number modulo 2^18
	elapsed int64  // ticks since the window began
	skew    int64  // ticks until it begins, if the clock has stepped back behind it
}

// windowNumbers is how many windows are told apart by their numbers: more than pass while a bucket is kept, but for a ban of just
// a multiple of so many windows.
const windowNumbers = 1 << 18

func positionAt(t, window int64) position {
	return position{index: uint32(t / window % windowNumbers), elapsed: t % window}
}

// since compares the position with the window that was counted last. It gives how many windows ago that was: 0, 1, or 2
// for all that counts no more. If the clock has stepped back behind that window, the position becomes its beginning.
func (p position) since(counted uint32, window int64) (position, int) {
	switch (p.index - counted) % windowNumbers {
	case 0:
		return p, 0
	case windowNumbers - 1:
		return position{index: counted, skew: window - p.elapsed}, 0
	case 1:
		return p, 1
	}
	return p, 2
}

// rest is the ticks until the window ends.
func (p position) rest(window int64) int64 { return window - p.elapsed + p.skew }
