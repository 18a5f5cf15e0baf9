package fiojob

import (
	"math"
	"slices"
	"strings"
	"unicode"
)

// Logs are the logs that a job of `bragg io` writes while it runs; loads of scenarios record intervals instead.
type Logs struct {
	Bandwidth, Latency, IOPS, Histogram Log
	// AverageMillis is the averaging window of values; 0 logs every operation. HistogramMillis is the time between two
	// lines of the histogram log; 0 writes none.
	AverageMillis, HistogramMillis int
	// Coarseness merges 2^Coarseness buckets of the histogram log.
	Coarseness int
	Window     string // of latencies in a window: "avg" or "", "max", "both"
	Offset     bool   // a column with the offset
	Priority   bool   // the priority in hexadecimal
	Issued     bool   `json:",omitzero"` // a column with the time of submission, which fio 3.33 does not have
	Shared     bool   // one file for all clones
	// Epoch selects times of Clock (as numbered by clock_gettime(2), 0 is wall time) instead of times since the job's
	// start.
	Epoch bool
	Clock int
}

// Log is one log: whether it is enabled, and the prefix of its name; "" is the name of the job.
type Log struct {
	On     bool
	Prefix string
}

// Values of Logs.Window.
const (
	WindowMean = "avg"
	WindowMax  = "max"
	WindowBoth = "both"
)

// logOptions are the native options of logs.
var logOptions = []spec{
	{name: "write_bw_log", report: true, does: "log of bandwidth, in bragg io",
		apply: logOf(func(l *Logs) *Log { return &l.Bandwidth })},
	{name: "write_lat_log", report: true, does: "logs of latency (lat, clat and slat), in bragg io",
		apply: logOf(func(l *Logs) *Log { return &l.Latency })},
	{name: "write_iops_log", report: true, does: "log of operations, in bragg io",
		apply: logOf(func(l *Logs) *Log { return &l.IOPS })},
	{name: "write_hist_log", report: true, does: "log of latency histograms, in bragg io",
		apply: logOf(func(l *Logs) *Log { return &l.Histogram })},
	{name: "log_avg_msec", report: true, does: "window over which logged values are averaged; 0 logs every operation",
		apply: count(func(j *Job) *int { return &j.Logs.AverageMillis }, 0, math.MaxInt32)},
	{name: "log_hist_msec", report: true, does: "interval between logged histograms",
		apply: count(func(j *Job) *int { return &j.Logs.HistogramMillis }, 0, math.MaxInt32)},
	{name: "log_hist_coarseness", report: true, does: "merge 2 to this power buckets of a logged histogram",
		apply: count(func(j *Job) *int { return &j.Logs.Coarseness }, 0, 6)},
	{name: "log_max_value", report: true, does: "older name of log_window_value",
		apply: setLogMax},
	{name: "log_window_value", report: true, does: "latency of a window to log: avg (or 0), max (or 1), or both, in two columns",
		apply: setLogWindow},
	{name: "log_offset", report: true, does: "add a column with the offset to logs",
		apply: boolean(func(j *Job) *bool { return &j.Logs.Offset })},
	{name: "log_prio", report: true, does: "log priorities in hexadecimal",
		apply: boolean(func(j *Job) *bool { return &j.Logs.Priority })},
	{name: "log_issue_time", report: true, does: "add a last column with the submission time in nanoseconds to clat and slat logs; 0 in other logs and in averages",
		apply: boolean(func(j *Job) *bool { return &j.Logs.Issued })},
	{name: "per_job_logs", report: true, does: "separate log file for each clone; 0: one file for all",
		apply: not(func(j *Job) *bool { return &j.Logs.Shared })},
	{name: "log_unix_epoch", report: true, does: "wall-clock times in logs",
		apply: boolean(func(j *Job) *bool { return &j.Logs.Epoch })},
	{name: "log_alternate_epoch", report: true, does: "times of an alternate clock in logs",
		apply: boolean(func(j *Job) *bool { return &j.Logs.Epoch })},
	{name: "log_alternate_epoch_clock_id", report: true, does: "ID of the alternate clock",
		apply: count(func(j *Job) *int { return &j.Logs.Clock }, 0, 11)},
}

// logOf enables a log. Without a value, its name begins with that of the job.
func logOf(field func(*Logs) *Log) apply {
	return func(j *Job, a *arg) {
		if a.Text != "" {
			a.Blank()
		}
		*field(&j.Logs) = Log{On: true, Prefix: a.Text}
	}
}

// setLogWindow reads log_window_value, which replaced log_max_value after fio 3.33.
func setLogWindow(j *Job, a *arg) {
	choice(func(j *Job) *string { return &j.Logs.Window },
		[]string{WindowMean, WindowMax, WindowBoth}, map[string]string{"0": WindowMean, "1": WindowMax})(j, a)
}

// setLogMax reads the switch of fio 3.33, and the words that later versions accept under its name.
func setLogMax(j *Job, a *arg) {
	if strings.ContainsFunc(a.Text, unicode.IsLetter) && !slices.Contains([]string{"true", "yes", "on", "false", "no", "off"}, strings.ToLower(a.Text)) {
		setLogWindow(j, a)
		return
	}
	highest := j.Logs.Window == WindowMax
	a.Boolean(&highest, false)
	j.Logs.Window = WindowMean
	if highest {
		j.Logs.Window = WindowMax
	}
}

// Any reports whether the job writes a log.
func (l *Logs) Any() bool { return l.Bandwidth.On || l.Latency.On || l.IOPS.On || l.Histogram.On }
