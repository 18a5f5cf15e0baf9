package thread

// Usage is what threads have used.
type Usage struct {
	UserNanos, SystemNanos   int64 // CPU time
	Switches                 int64 // of context, voluntary and not
	MinorFaults, MajorFaults int64
}

// Add adds what others have used.
func (u *Usage) Add(o Usage) {
	u.UserNanos += o.UserNanos
	u.SystemNanos += o.SystemNanos
	u.Switches += o.Switches
	u.MinorFaults += o.MinorFaults
	u.MajorFaults += o.MajorFaults
}

// Since returns what was used since an earlier reading.
func (u Usage) Since(o Usage) Usage {
	return Usage{
		u.UserNanos - o.UserNanos, u.SystemNanos - o.SystemNanos, u.Switches - o.Switches,
		u.MinorFaults - o.MinorFaults, u.MajorFaults - o.MajorFaults,
	}
}
