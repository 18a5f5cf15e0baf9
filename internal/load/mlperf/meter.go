package mlperf

import (
	"math"
	"sync"
)

// meter measures accelerator utilization (AU), samples and waits. Times are nanoseconds on the run's axis.
//
// By the definition of MLPerf Storage, the AU of an epoch is the computation time of all steps but the first, divided by the time of
// the epoch without its first step, from reading to computation. An accelerator computes for a constant time, however late its
// timer is. The AU of a load is the mean over epochs of the mean over accelerators. Throughput is that of whole epochs, with their
// first step.
type meter struct {
	mu      sync.Mutex
	compute int64 // of one step
	batch   int
	ahead   int // batches that the readers of an accelerator hold before its first step

	epoch    epoch
	epochs   []result // that ended
	lanes    []lane
	busy     int64 // computation time of measured steps, of all accelerators, that ended
	measured int64 // time in which these could have computed, up to since
	since    int64
}

// epoch is the one that runs.
type epoch struct {
	began   int64
	steps   int   // that all accelerators completed
	stepped int64 // end of the last one of these
}

// lane is one accelerator in the epoch that runs.
type lane struct {
	begun     int64 // when it began to compute, 0: it waits
	firstDone int64 // end of its first step, 0: not yet
	counts    bool  // the step that it computes is measured

	read         int   // batches
	filled, last int64 // when the first one beyond those read ahead was read, and the latest one
}

// result is a completed epoch, or a part of one.
type result struct {
	accelerators int
	steps        int
	au           float64 // NaN: it had no measured step
	samples      float64 // per second
	seconds      float64
	// supply is the AU that storage alone allows: the computation time of the batches that were read after the first fill, divided by
	// the time that they took. NaN: unknown.
	supply float64
}

func (m *meter) beginEpoch(accelerators int, at int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lanes, m.epoch, m.since = make([]lane, accelerators), epoch{began: at}, at
}

// pass moves the measured time forward. The caller holds the lock.
func (m *meter) pass(at int64) {
	for i := range m.lanes {
		if first := m.lanes[i].firstDone; first != 0 && at > m.since {
			m.measured += at - max(m.since, first)
		}
	}
	m.since = max(m.since, at)
}

func (m *meter) begin(accelerator int, at int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &m.lanes[accelerator]
	l.begun, l.counts = at, l.firstDone != 0
}

// ready notes that a batch was read. Those of the first fill are computed in measured steps, so that the AU of a few steps does not
// show how slow storage is.
func (m *meter) ready(accelerator, step int, at int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := &m.lanes[accelerator]
	if l.read, l.last = l.read+1, max(l.last, at); step == m.ahead {
		l.filled = at
	}
}

// end notes the end of an accelerator's computation.
func (m *meter) end(accelerator int, at int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pass(at)
	l := &m.lanes[accelerator]
	if l.begun = 0; l.counts {
		m.busy += m.compute
	}
	if l.firstDone == 0 {
		l.firstDone = at
	}
}

// stepped notes that all accelerators completed a step.
func (m *meter) stepped(at int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch.steps, m.epoch.stepped = m.epoch.steps+1, at
}

// endEpoch closes the epoch and returns what it measured. What was under way counts for nothing. An epoch that was cut off counts only
// if there is no other: its last steps are computed on batches that were read ahead.
func (m *meter) endEpoch(complete bool) result {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pass(m.epoch.stepped)
	r := m.current()
	if m.epoch.steps > 0 && (complete || len(m.epochs) == 0) {
		m.epochs = append(m.epochs, r)
	}
	m.lanes, m.epoch = nil, epoch{}
	return r
}

// current is the running epoch up to its last step. The caller holds the lock.
func (m *meter) current() result {
	e := &m.epoch
	r := result{accelerators: len(m.lanes), steps: e.steps, au: math.NaN(), supply: m.supply(), seconds: float64(e.stepped-e.began) / 1e9}
	if e.steps == 0 {
		return result{accelerators: r.accelerators, au: r.au, supply: r.supply}
	}
	r.samples = float64(e.steps*m.batch*len(m.lanes)) / r.seconds
	if e.steps > 1 {
		r.au = 0
		for i := range m.lanes {
			r.au += float64(int64(e.steps-1)*m.compute) / float64(e.stepped-m.lanes[i].firstDone) / float64(len(m.lanes))
		}
	}
	return r
}

// supply is that of the running epoch. The caller holds the lock.
func (m *meter) supply() float64 {
	var work, took int64
	for i := range m.lanes {
		if l := &m.lanes[i]; l.filled != 0 && l.read > m.ahead+1 {
			work, took = work+int64(l.read-m.ahead-1)*m.compute, took+l.last-l.filled
		}
	}
	if took <= 0 {
		return math.NaN()
	}
	return float64(work) / float64(took)
}

// total is the mean over epochs, and the running one while there is no other. Epochs of a single step have no AU.
func total(epochs []result) (t result) {
	t.au = math.NaN()
	sum, known := 0.0, 0
	for _, r := range epochs {
		t.accelerators, t.steps, t.seconds = r.accelerators, t.steps+r.steps, t.seconds+r.seconds
		t.samples += r.samples / float64(len(epochs))
		if !math.IsNaN(r.au) {
			sum, known = sum+r.au, known+1
		}
	}
	if known > 0 {
		t.au = sum / float64(known)
	}
	return t
}

// sofar is the result of all epochs that ended, or of the first one up to its last step.
func (m *meter) sofar() result {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.epochs) == 0 && len(m.lanes) > 0 {
		return m.current()
	}
	return total(m.epochs)
}

// forget drops the epochs that ended, whose number of accelerators is not that of the next one.
func (m *meter) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epochs = nil
}

// look returns the computation time and the measured time of all accelerators until a time, with the steps under way.
func (m *meter) look(at int64) (busy, measured int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pass(at)
	busy = m.busy
	for i := range m.lanes {
		if l := &m.lanes[i]; l.begun != 0 && l.counts {
			busy += max(0, min(at-l.begun, m.compute))
		}
	}
	return busy, m.measured
}
