package fioreport

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/fiojob/syntax"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
)

// Labels are the parts of outputs other than the numbers.
type Labels struct {
	Version string          // "fio-3.33 (bragg 1.2)": readers want it to begin with fio-
	Global  []syntax.Option // of [global], as written
	// Own returns the options that a job sets itself.
	Own func(j *fiojob.Job) []syntax.Option
	// Notes are warnings about the run, one per line; they are under "bragg".
	Notes []string
	// Bins adds the histograms, as json+ does.
	Bins bool
}

// FormatVersion is the release of fio whose output format is used.
const FormatVersion = "fio-3.33"

// percentilesDefault are fio's.
var percentilesDefault = []float64{1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99}

// WriteJSON writes the report with the keys of fio's JSON. Figures without a fio key are under "bragg" in each job:
// response times apart from service times, due operations, errors by class. slat_ns is part of clat_ns, and empty unless
// requested.
func (r *Report) WriteJSON(w io.Writer, l Labels) error {
	now := r.Started.Add(r.Elapsed)
	doc := jsonDocument{
		Version: l.Version, Timestamp: now.Unix(), TimestampMillis: now.UnixMilli(), Time: now.Format(time.ANSIC),
		Global: options(l.Global), Jobs: []jsonJob{}, Disks: []jsonDisk{},
	}
	for i := range r.Rows {
		doc.Jobs = append(doc.Jobs, r.jsonJob(&r.Rows[i], l))
	}
	for _, d := range r.Disks {
		doc.Disks = append(doc.Disks, d.json())
	}
	if len(l.Notes) > 0 {
		doc.Bragg = &jsonNotes{Notes: l.Notes}
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

type jsonDocument struct {
	Version         string            `json:"fio version"`
	Timestamp       int64             `json:"timestamp"`
	TimestampMillis int64             `json:"timestamp_ms"`
	Time            string            `json:"time"`
	Global          map[string]string `json:"global options,omitempty"`
	Jobs            []jsonJob         `json:"jobs"`
	Disks           []jsonDisk        `json:"disk_util"`
	Bragg           *jsonNotes        `json:"bragg,omitempty"`
}

// jsonNotes has the parts of the whole document for which fio has no key.
type jsonNotes struct {
	Notes []string `json:"notes"`
}

type jsonJob struct {
	Name        string            `json:"jobname"`
	Group       int               `json:"groupid"`
	Error       int               `json:"error"`
	ETA         int64             `json:"eta"`
	Elapsed     int64             `json:"elapsed"`
	Options     map[string]string `json:"job options"`
	Description string            `json:"desc,omitempty"`
	Read        *jsonDirection    `json:"read,omitempty"`
	Write       *jsonDirection    `json:"write,omitempty"`
	Trim        *jsonDirection    `json:"trim,omitempty"`
	Sync        *jsonSync         `json:"sync,omitempty"`
	Mixed       *jsonDirection    `json:"mixed,omitempty"`
	Runtime     int64             `json:"job_runtime"`
	User        Decimal           `json:"usr_cpu"`
	System      Decimal           `json:"sys_cpu"`
	Switches    int64             `json:"ctx"`
	MajorFaults int64             `json:"majf"`
	MinorFaults int64             `json:"minf"`
	Level       shares            `json:"iodepth_level"`
	Submit      shares            `json:"iodepth_submit"`
	Complete    shares            `json:"iodepth_complete"`
	Nanos       shares            `json:"latency_ns"`
	Micros      shares            `json:"latency_us"`
	Millis      shares            `json:"latency_ms"`
	Depth       int               `json:"latency_depth"`
	Target      int64             `json:"latency_target"` // nanoseconds
	Percentile  Decimal           `json:"latency_percentile"`
	Window      int64             `json:"latency_window"` // microseconds
	ErrorsTotal *uint64           `json:"total_err,omitempty"`
	FirstError  *int              `json:"first_error,omitempty"`
	Steady      *jsonSteady       `json:"steadystate,omitempty"`
	Bragg       jsonOurs          `json:"bragg"`
}

type jsonDirection struct {
	Bytes      uint64         `json:"io_bytes"`
	Kilobytes  uint64         `json:"io_kbytes"`
	BytesRate  uint64         `json:"bw_bytes"`
	Rate       uint64         `json:"bw"`
	IOPS       Decimal        `json:"iops"`
	Runtime    int64          `json:"runtime"`
	Total      uint64         `json:"total_ios"`
	Short      uint64         `json:"short_ios"`
	Dropped    uint64         `json:"drop_ios"`
	Submission jsonLatency    `json:"slat_ns"`
	Completion jsonLatency    `json:"clat_ns"`
	Latency    jsonLatency    `json:"lat_ns"`
	Priorities []jsonPriority `json:"prios,omitempty"`
	BWMin      uint64         `json:"bw_min"`
	BWMax      uint64         `json:"bw_max"`
	BWShare    Decimal        `json:"bw_agg"`
	BWMean     Decimal        `json:"bw_mean"`
	BWDev      Decimal        `json:"bw_dev"`
	BWSamples  int            `json:"bw_samples"`
	IOPSMin    uint64         `json:"iops_min"`
	IOPSMax    uint64         `json:"iops_max"`
	IOPSMean   Decimal        `json:"iops_mean"`
	IOPSDev    Decimal        `json:"iops_stddev"`
	IOPSCount  int            `json:"iops_samples"`
}

type jsonLatency struct {
	Min        uint64            `json:"min"`
	Max        uint64            `json:"max"`
	Mean       Decimal           `json:"mean"`
	StdDev     Decimal           `json:"stddev"`
	Count      uint64            `json:"N"`
	Percentile pairs             `json:"percentile,omitempty"`
	Bins       map[string]uint64 `json:"bins,omitempty"`
}

type jsonSync struct {
	Total   uint64      `json:"total_ios"`
	Latency jsonLatency `json:"lat_ns"`
}

type jsonDisk struct {
	Name        string  `json:"name"`
	Reads       uint64  `json:"read_ios"`
	Writes      uint64  `json:"write_ios"`
	ReadMerges  uint64  `json:"read_merges"`
	WriteMerges uint64  `json:"write_merges"`
	ReadMillis  uint64  `json:"read_ticks"`
	WriteMillis uint64  `json:"write_ticks"`
	Queue       uint64  `json:"in_queue"`
	Utilization Decimal `json:"util"`
}

// jsonOurs has the parts of a job for which fio has no key. Latencies are nanoseconds.
type jsonOurs struct {
	Engine       string                       `json:"engine"`
	Clones       int                          `json:"clones"`
	RuntimeNanos int64                        `json:"runtime_ns"`
	Due          uint64                       `json:"due"`
	NotIssued    uint64                       `json:"not_issued"`
	BacklogMax   uint64                       `json:"backlog_max"`
	Backlog      string                       `json:"backlog,omitempty"`
	LatencyMet   *bool                        `json:"latency_met,omitempty"`
	StalledNanos int64                        `json:"stalled_ns"`
	LogWaitNanos int64                        `json:"log_wait_ns"`
	Generator    jsonStrain                   `json:"generator"`
	Service      map[string]jsonLatency       `json:"service_ns"`
	Response     map[string]jsonLatency       `json:"response_ns"`
	Errors       map[string]map[string]uint64 `json:"errors,omitempty"`
}

// Decimal is a number with six decimals, as fio prints it; NaN and infinity are 0.
type Decimal float64

// MarshalJSON implements json.Marshaler.
func (f Decimal) MarshalJSON() ([]byte, error) {
	v := float64(f)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	return strconv.AppendFloat(nil, v, 'f', 6, 64), nil
}

// pairs is an object whose keys keep their order.
type pairs []pair

type pair struct {
	key   string
	value any
}

// MarshalJSON implements json.Marshaler.
func (p pairs) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, kv := range p {
		value, err := json.Marshal(kv.value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(strconv.AppendQuote(out, kv.key), ':')
		out = append(out, value...)
	}
	return append(out, '}'), nil
}

func options(list []syntax.Option) map[string]string {
	if len(list) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, o := range list {
		out[o.Key] = o.Value
	}
	return out
}

func (r *Report) jsonJob(row *Row, l Labels) jsonJob {
	own := options(l.Own(&row.Job))
	if own == nil {
		own = map[string]string{}
	}
	own["name"] = row.Name
	percentiles := row.percentiles()
	j := jsonJob{
		Name: row.Name, Group: row.Group, Error: errno(row.Err), Elapsed: int64(math.Ceil(r.Elapsed.Seconds())), Options: own,
		Description: row.description(),
		Runtime:     millis(row.Runtime) * int64(row.Clones), Switches: row.Account.Switches,
		MajorFaults: row.Account.MajorFaults, MinorFaults: row.Account.MinorFaults,
		Level: row.levels(), Submit: batches(row.Account.Submitted), Complete: batches(row.Account.Completed),
		Bragg: row.ours(percentilesOf(&row.Job), l), Steady: row.Steady.json(),
	}
	if row.Due > 0 {
		j.Bragg.Backlog = backlogPolicy(row.DropAfter)
	}
	row.jsonControl(&j)
	j.User, j.System = Decimal(row.cpuShare(row.Account.UserNanos)), Decimal(row.cpuShare(row.Account.SystemNanos))
	j.Nanos, j.Micros, j.Millis = row.latencyClasses()
	for _, d := range row.shown() {
		*j.place(d.name) = d.json(percentiles, l.Bins)
	}
	if row.unified() != directionsMixed {
		j.Sync = &jsonSync{row.Account.Syncs.Count(), latencyOf(&row.Account.Syncs, percentilesOf(&row.Job), l.Bins)}
	}
	return j
}

// place returns the field of the direction with this name.
func (j *jsonJob) place(name string) **jsonDirection {
	switch name {
	case "read":
		return &j.Read
	case "write":
		return &j.Write
	case "trim":
		return &j.Trim
	}
	return &j.Mixed
}

func (row *Row) ours(percentiles []float64, l Labels) jsonOurs {
	out := jsonOurs{
		Engine: row.Engine, Clones: row.Clones, RuntimeNanos: int64(row.Runtime), Due: row.Due, NotIssued: row.NotIssued,
		BacklogMax: row.BacklogMax, StalledNanos: int64(row.Stalled), LogWaitNanos: int64(row.LogWait), Generator: row.Strain.json(), Service: map[string]jsonLatency{},
		Response: map[string]jsonLatency{},
	}
	for d := range row.Directions {
		dir, name := &row.Directions[d], interval.Direction(d).String()
		if dir.Operations > 0 {
			out.Service[name], out.Response[name] = latencyOf(dir.Service, percentiles, l.Bins), latencyOf(dir.Response, percentiles, l.Bins)
		}
		if len(dir.Errors) > 0 {
			if out.Errors == nil {
				out.Errors = map[string]map[string]uint64{}
			}
			out.Errors[name] = dir.Errors
		}
	}
	return out
}

func (d *Disk) json() jsonDisk {
	return jsonDisk{
		d.Name, d.Reads, d.Writes, d.ReadMerges, d.WriteMerges, d.ReadMillis, d.WriteMillis, d.QueueMillis, Decimal(d.Utilization),
	}
}

func (d *namedDirection) json(p percentiles, bins bool) *jsonDirection {
	out := &jsonDirection{
		Bytes: d.Bytes, Kilobytes: d.Bytes >> 10, BytesRate: uint64(d.PerSecond(d.Bytes)), Rate: uint64(d.PerSecond(d.Bytes)) >> 10,
		IOPS: Decimal(d.PerSecond(d.Operations)), Runtime: millis(d.Runtime), Total: d.Operations, Short: d.Errors["short-read"] + d.Errors["short-write"],
		Completion: latencyOf(d.Service, p.clat, bins), Latency: latencyOf(d.Response, p.lat, bins),
		Submission: latencyOf(d.submissions, p.slat, bins), Priorities: d.jsonPriorities(p, bins),
		BWMin: uint64(d.Bandwidth.Min) >> 10, BWMax: uint64(d.Bandwidth.Max) >> 10, BWMean: Decimal(d.Bandwidth.Mean / 1024),
		BWDev: Decimal(d.Bandwidth.StdDev / 1024), BWSamples: d.Bandwidth.Samples,
		IOPSMin: uint64(d.IOPS.Min), IOPSMax: uint64(d.IOPS.Max), IOPSMean: Decimal(d.IOPS.Mean), IOPSDev: Decimal(d.IOPS.StdDev),
		IOPSCount: d.IOPS.Samples,
	}
	if rate := d.PerSecond(d.Bytes); rate > 0 {
		out.BWShare = Decimal(min(100, 100*d.Bandwidth.Mean/rate))
	}
	return out
}

func latencyOf(h *stat.Histogram, percentiles []float64, bins bool) jsonLatency {
	out := jsonLatency{Min: h.Min(), Max: h.Max(), Mean: Decimal(h.Mean()), StdDev: Decimal(h.StdDev()), Count: h.Count()}
	if h.Count() == 0 {
		return out
	}
	for _, p := range percentiles {
		out.Percentile = append(out.Percentile, pair{strconv.FormatFloat(p, 'f', 6, 64), uint64(h.Quantile(p / 100))})
	}
	if bins {
		out.Bins = map[string]uint64{}
		h.Buckets(func(bucket int, count uint64) bool {
			low, high := stat.BucketBounds(bucket)
			out.Bins[strconv.FormatUint(low+(high-low)/2, 10)] = count
			return true
		})
	}
	return out
}

// percentilesOf reads percentile_list, or returns the default if it is invalid.
func percentilesOf(j *fiojob.Job) []float64 {
	for _, o := range j.Options {
		if o.Key != "percentile_list" {
			continue
		}
		var out []float64
		for _, text := range slices.DeleteFunc(fields(o.Value), func(s string) bool { return s == "" }) {
			if p, err := strconv.ParseFloat(text, 64); err == nil && p > 0 && p <= 100 {
				out = append(out, p)
			}
		}
		if len(out) > 0 {
			slices.Sort(out)
			return out
		}
	}
	return percentilesDefault
}

// PID replaces fio's process ID of a clone: here all clones are threads of one process.
var PID = os.Getpid()
