package config

// The words of the file.
var (
	logLevels      = []string{"debug", "info", "warn", "error"}
	logFormats     = []string{"json", "console"}
	headerFamilies = []string{"x-ratelimit", "ratelimit"}
	bodies         = []string{"json"}
)

func (f fields) log(l *Log) {
	f, ok := f.section("log", logSection)
	if !ok {
		return
	}
	f.choose("level", logLevels, &l.Level)
	f.choose("format", logFormats, &l.Format)
}

func (f fields) response(r *Response) {
	f, ok := f.section("response", responseSection)
	if !ok {
		return
	}
	if v, ok := f.get("headers"); ok {
		entries, _ := v.list(0, "a list of "+oneOf(headerFamilies)+", [] for none")
		var on [2]bool
		for _, entry := range entries {
			if i, ok := entry.choice(headerFamilies); ok {
				on[i] = true
			}
		}
		r.XRateLimit, r.RateLimit = on[0], on[1]
	}
	f.choose("body", bodies, &r.Body)
	if v, ok := f.get("status"); ok {
		n, _ := v.number(400, 599)
		r.Status = int(n)
	}
}
