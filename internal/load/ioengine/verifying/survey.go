package verifying

import (
	"bytes"
	"fmt"
	"math"

	"github.com/braggdev/bragg/internal/fio/fiojob"
	"github.com/braggdev/bragg/internal/fio/verify"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/load/ioengine/backend"
	"github.com/braggdev/bragg/internal/load/ioengine/program"
	"github.com/braggdev/bragg/internal/load/ioengine/queue"
)

// What another run wrote is known by its headers: each says its place, its length and a digest. Which places that run wrote to
// is known only where it drew them as this one does. fio draws others, and so does a job with another seed; where they wrote
// a part of a region only, a block without a header may never have been written.
//
//	reading in the order of this job ──a block has no header, and none that is there has a seed of Bragg──▶ survey: the
//	whole region is read, what has a header must be right, and as much must have one as the job wrote
//
// So lost blocks are found by their number, and wrong ones by their digest. Where the number does not decide it, because more
// has headers than the job writes or because not everything was read, blocks without a header count as wrong.

// survey is how far a lane is with that.
type survey struct {
	possible bool // the order is one that others do not have, and a part of the region is written
	exact    bool // every writer with these options wrote want bytes
	own      bool // a header has the seed that the write in this order has
	under    bool // way
	over     bool

	want   int64 // bytes that have to have headers; of reading in order while that goes on
	found  int64
	absent uint64 // operations that found nothing wrong but intervals without a header
	blanks uint64 // intervals without a header
	kept   []postponed
	bytes  int64  // of the buffers in kept
	doubt  string // why it could not be decided whether a block was ever written
}

// postponed is an interval without a header, of which it is not known yet whether it should have one.
type postponed struct {
	slot backend.Slot // its buffer is a copy, nil where nothing is dumped
	m    *verify.Mismatch
	want *verify.Stamp
}

// keptBytesMax bounds what one lane keeps in memory until it is known whether it has to be dumped.
const keptBytesMax = 16 << 20

// note looks at one interval that was read in the order of the job, and reports whether what is wrong with it may be that
// it was not written.
func (u *survey) note(m *verify.Mismatch, header verify.Header, want *verify.Stamp, length int64) (absent bool) {
	if !u.possible {
		return false
	}
	u.want += length
	if m == nil {
		u.own = u.own || want != nil && header.Seed != 0 && header.Seed == want.Seed
		return false
	}
	return !u.own && !m.Header.Marked()
}

// due reports whether a survey has to decide.
func (u *survey) due() bool { return u.possible && u.blanks > 0 && !u.own && !u.over }

// beginSurvey starts it. Of mixed sizes, and of places that may come twice, another order has other bytes.
func (v *Verifier) beginSurvey(l *queue.Queue) {
	u := &v.survey
	u.under = true
	direction := surveyed(v.spec)
	sizes := &l.Job.Sizes[direction]
	if l.Job.Reads && l.Job.Writes {
		// How many operations are writes is drawn too: six deviations less than half of them.
		u.want = max(sizes.Smallest, u.want-6*int64(math.Sqrt(float64(u.want/sizes.Largest)))*sizes.Largest)
	}
	if !sizes.Fixed() {
		u.want = min(u.want/sizes.Largest*sizes.Smallest, u.want-sizes.Largest)
	}
	var regions int64
	for i := range l.Spec.Streams {
		regions += l.Spec.Streams[i].Region.Length / sizes.Smallest * sizes.Smallest
	}
	u.want = min(u.want, regions)
	for i := range l.Streams {
		if !l.Streams[i].MayRepeat(direction) {
			continue
		}
		u.want /= 2
		break
	}
	if limit := v.spec.Limit; limit != nil {
		u.want = min(u.want, int64(limit.Writes-min(limit.Writes, limit.Depth))*sizes.Smallest)
	}
	v.source = newSurveyBack(l, direction)
}

// judge looks at one interval of the survey.
func (u *survey) judge(m *verify.Mismatch, length int64) (wrong bool) {
	if m == nil {
		u.found += length
		return false
	}
	// A header of another length is of an older write of another job. One that is itself damaged is missing in the count.
	return m.Header.Valid() && int64(m.Header.Length) == length
}

// conclude decides about blocks without headers when everything was read, or when nothing more will be.
func (v *Verifier) conclude(w *Report, l *queue.Queue) {
	u := &v.survey
	whole := u.under && v.source == nil
	u.over = true
	switch {
	case u.blanks == 0 || whole && (u.found == u.want || u.found > u.want && !u.exact):
		if u.under {
			w.SurveyedBytes += u.found
			w.SurveyVague = w.SurveyVague || !u.exact
		}
		return
	case !whole:
		u.doubt = "whether it was ever written is not known, because not all of the region was read"
	default:
		u.doubt = fmt.Sprintf("whether it was ever written is not known: %d bytes of the region have headers, and this job covers %d", u.found, u.want)
	}
	v.settlePostponed(w, l)
}

// postpone keeps an interval without a header until it is known whether it should have one.
func (v *Verifier) postpone(w *Report, s *backend.Slot, m *verify.Mismatch, want *verify.Stamp) {
	u := &v.survey
	u.blanks++
	dumps := v.spec.Dump && w.Dumps != "" && len(u.kept) < dumpsMax
	p := postponed{slot: *s, m: m}
	p.slot.Buffer = nil
	if want != nil {
		stamp := *want
		p.want = &stamp
	}
	if n := len(u.kept); dumps && n > 0 && u.kept[n-1].slot.Stream == s.Stream && u.kept[n-1].slot.Offset == s.Offset {
		p.slot.Buffer = u.kept[n-1].slot.Buffer
	} else if dumps && u.bytes+s.Size <= keptBytesMax {
		p.slot.Buffer = bytes.Clone(s.Buffer[:s.Size])
		u.bytes += s.Size
	}
	if len(u.kept) < mismatchesMax || p.slot.Buffer != nil {
		u.kept = append(u.kept, p)
	}
}

// settlePostponed reports what was postponed, because it should have headers or because that cannot be decided. It returns
// whether there was any.
func (v *Verifier) settlePostponed(w *Report, l *queue.Queue) bool {
	u := &v.survey
	if u.blanks == 0 {
		return false
	}
	for range u.absent {
		w.Wrong++
	}
	w.MismatchCount += u.blanks - uint64(len(u.kept))
	for i := range u.kept {
		v.report(w, l, &u.kept[i].slot, u.kept[i].m, u.kept[i].want)
	}
	u.absent, u.blanks, u.kept, u.doubt = 0, 0, nil, ""
	return true
}

// surveyBack reads the regions of all streams from their starts to their ends.
type surveyBack struct {
	of       *queue.Queue
	size     int64 // of one read
	smallest int64
	stream   int
	at       int64
}

func newSurveyBack(l *queue.Queue, direction int) *surveyBack {
	step := l.Job.Verify.Format.Interval
	sizes := &l.Job.Sizes[direction]
	return &surveyBack{of: l, size: max(sizes.Largest/step*step, step), smallest: sizes.Smallest}
}

func (b *surveyBack) build(*Verifier) bool                      { return true }
func (b *surveyBack) more() bool                                { return false }
func (b *surveyBack) grain(size int64) int64                    { return size }
func (b *surveyBack) holds(*backend.Slot, int64, int64) holding { return holdsWrite }

func (b *surveyBack) next(*Verifier) (Written, found) {
	for ; b.stream < len(b.of.Streams); b.stream, b.at = b.stream+1, 0 {
		region := &b.of.Spec.Streams[b.stream].Region
		size := min(b.size, (region.Length-b.at)/b.smallest*b.smallest)
		if size <= 0 {
			continue
		}
		from := region.Start + b.at
		b.at += size
		return Written{Offset: from, Size: size, Stream: int32(b.stream)}, foundOne
	}
	return Written{}, foundEnd
}

// surveyed is the direction of the operations whose data is verified.
func surveyed(spec *program.Verification) int {
	if spec.Only {
		return int(interval.Write)
	}
	return int(interval.Read)
}

// countable reports whether any order of these options writes the same number of bytes: blocks of one size that come once, by
// one writer.
func countable(spec *program.Verification, l *queue.Queue) bool {
	direction, j := surveyed(spec), &l.Job.Fio
	uncertain := j.Verify.Uncertain || j.IOSize.Percent > 0 || j.NumJobs > 1 && j.OffsetIncrement == (fiojob.Size{})
	return !uncertain && len(l.Streams) == 1 && spec.Limit == nil && !(l.Job.Reads && l.Job.Writes) &&
		l.Job.Sizes[direction].Fixed() && !l.Streams[0].MayRepeat(direction)
}

// surveyable reports whether headers alone say what was written.
func surveyable(spec *program.Verification, exact bool, l *queue.Queue) bool {
	format, j := &spec.Format, &l.Job.Fio
	if !spec.Only && !spec.Reads || format.HeaderBytes() == 0 || spec.Trims != nil || j.Sequence != 0 || len(l.Streams) == 0 {
		return false
	}
	if spec.Reads && (l.Job.Runtime > 0 || spec.Limit == nil && !exact) {
		// The whole region is not to be read in a job of so many seconds; and a job that reads knows how much was written only where
		// it reads as much as that, or where the state of the writer says it. What has no header is an error at once then, as in fio.
		return false
	}
	direction := surveyed(spec)
	sizes := &l.Job.Sizes[direction]
	whole := l.Spec.Count == 0 && spec.Limit == nil
	for i := range l.Streams {
		c := &l.Streams[i].Cursors[direction]
		spec := &l.Spec.Streams[i]
		if c.Region.ZoneBytes > 0 || l.Job.Align(direction)%format.Interval != 0 || sizes.Smallest%format.Interval != 0 {
			return false
		}
		each := c.Deck != nil || !l.Job.Random
		whole = whole && each && (spec.Amount == 0 || spec.Amount >= spec.Region.Length/sizes.Smallest*sizes.Smallest)
	}
	return !whole && (l.Job.Random || !sizes.Fixed() || l.Files != nil)
}
