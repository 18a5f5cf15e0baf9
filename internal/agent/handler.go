package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
)

// Handler returns the operations of the server, for any transport.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/hello", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.hello()) })
	mux.HandleFunc("GET /v1/health", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.health()) })
	mux.HandleFunc("GET /v1/log", s.serveLog)
	mux.HandleFunc("GET /metrics", s.expose)
	mux.HandleFunc("PUT /v1/workloads/{id}", s.fenced(s.prepare))
	mux.HandleFunc("POST /v1/workloads/{id}/start", s.fenced(s.start))
	mux.HandleFunc("GET /v1/workloads/{id}/intervals", s.stream)
	mux.HandleFunc("POST /v1/workloads/{id}/acknowledge", s.fenced(s.acknowledge))
	mux.HandleFunc("POST /v1/workloads/{id}/stop", s.fenced(s.stopTask))
	mux.HandleFunc("DELETE /v1/workloads/{id}", s.fenced(s.remove))
	return mux
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, err error) { reply(w, status, toWire(err)) }

func badRequest(format string, args ...any) error {
	return &diag.Error{Code: codeBadRequest, Message: fmt.Sprintf(format, args...), Exit: diag.ExitInternal}
}

// fenced lets a request through only when no controller with a higher fencing counter was seen. Handlers ask again, under the
// lock, before they change anything: a controller may be stopped between the first byte of its request and the last.
func (s *Server) fenced(next func(http.ResponseWriter, *http.Request, uint64)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fence, err := strconv.ParseUint(r.Header.Get(fenceHeader), 10, 64)
		if err != nil {
			refuse(w, http.StatusBadRequest, badRequest("read header %s: %v", fenceHeader, err))
			return
		}
		s.mu.Lock()
		err = s.checkFence(fence)
		s.mu.Unlock()
		if err != nil {
			refuse(w, http.StatusConflict, err)
			return
		}
		next(w, r, fence)
	}
}

// checkFence refuses whoever has lost the lease. What a former holder of it started is stopped when the next one is first
// heard. The caller holds the lock.
func (s *Server) checkFence(fence uint64) error {
	if fence < s.fence {
		return &diag.Error{Code: codeStaleFence, Message: "another run has taken over this agent", Exit: diag.ExitLocked}
	}
	if fence > s.fence {
		s.fence = fence
		for _, t := range s.tasks {
			t.cancel()
		}
	}
	return nil
}

// whenFenced calls change while nobody else can take over, unless somebody has.
func (s *Server) whenFenced(fence uint64, change func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkFence(fence); err != nil {
		return err
	}
	return change()
}

// prepare is idempotent by the id, so that a controller that lost the reply may ask again.
func (s *Server) prepare(w http.ResponseWriter, r *http.Request, fence uint64) {
	id := r.PathValue("id")
	if !validID(id) {
		refuse(w, http.StatusBadRequest, badRequest("read workload: bad id"))
		return
	}
	s.at("agent.order")
	o, err := readOrder(w, r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	var t *task
	err = s.whenFenced(fence, func() error { t, err = s.admit(id, o); return err })
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	s.at("agent.admitted")
	select {
	case <-t.prepared:
	case <-r.Context().Done():
		return
	}
	if t.prepareErr != nil {
		refuse(w, http.StatusUnprocessableEntity, t.prepareErr)
		return
	}
	reply(w, http.StatusCreated, t.health())
	s.at("agent.answered")
}

// order is what a controller wants to run.
type order struct {
	work load.Workload
	hold bool   // until it is told to start
	zero *int64 // uptime at the zero of the run's axis; nil: as the workload says
}

func readOrder(w http.ResponseWriter, r *http.Request) (order, error) {
	var o order
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, workloadBytesMax))
	if err != nil {
		return o, badRequest("read workload: %v", err)
	}
	if err := json.Unmarshal(text, &o.work); err != nil {
		return o, badRequest("read workload: %v", err)
	}
	query := r.URL.Query()
	o.hold = query.Get(holdKey) == "1"
	if text := query.Get(zeroKey); text != "" {
		zero, err := strconv.ParseInt(text, 10, 64)
		if err != nil || zero > uptimeMax || zero < -uptimeMax {
			return o, badRequest("read %s: out of bounds", zeroKey)
		}
		o.zero = &zero
	}
	return o, nil
}

// start lets a held workload go. It is idempotent: the first moment counts.
func (s *Server) start(w http.ResponseWriter, r *http.Request, fence uint64) {
	at, err := strconv.ParseInt(r.URL.Query().Get(startKey), 10, 64)
	if err != nil || at > uptimeMax || at < -uptimeMax {
		refuse(w, http.StatusBadRequest, badRequest("read %s: out of bounds", startKey))
		return
	}
	s.at("agent.start")
	s.change(w, r, fence, func(t *task) { t.startAt(time.Duration(at)) })
}

// change does something to a task of a controller that holds the lease.
func (s *Server) change(w http.ResponseWriter, r *http.Request, fence uint64, do func(t *task)) {
	t := s.task(w, r)
	if t == nil {
		return
	}
	if err := s.whenFenced(fence, func() error { do(t); return nil }); err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// admit starts the workload unless one with this id is known already. The caller holds the lock.
func (s *Server) admit(id string, o order) (*task, error) {
	work := o.work
	generator, ok := s.options.Generators[work.Generator]
	if !ok {
		return nil, badRequest("run workload %q: no generator %q here", work.Name, work.Generator)
	}
	if err := s.checkDevices(work); err != nil {
		return nil, err
	}
	if known, ok := s.tasks[id]; ok {
		return known, nil
	}
	if s.closed {
		return nil, &diag.Error{Code: codeBusy, Message: "the agent is ending", Exit: diag.ExitUnavailable}
	}
	if len(s.tasks) >= tasksMax && !s.forgetEnded() {
		return nil, &diag.Error{
			Code: codeBusy, Message: fmt.Sprintf("run workload %q: %d are running already", work.Name, tasksMax),
			Exit: diag.ExitUnavailable,
		}
	}
	t := newTask(id, o, s)
	ctx, cancel := context.WithCancel(s.ctx)
	t.cancel = cancel
	s.tasks[id] = t
	s.order = append(s.order, id)
	s.running.Go(func() {
		defer cancel()
		s.noteTask(work, "preparing", nil)
		t.run(ctx, generator)
	})
	return t, nil
}

// forgetEnded drops the oldest task that has ended. The caller holds the lock.
func (s *Server) forgetEnded() bool {
	for _, id := range s.order {
		if !s.tasks[id].health().Running {
			s.drop(id)
			return true
		}
	}
	return false
}

// drop forgets a task. The caller holds the lock.
func (s *Server) drop(id string) {
	s.tasks[id].forget()
	delete(s.tasks, id)
	s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == id })
}

func (s *Server) checkDevices(work load.Workload) error {
	if len(work.Devices) > devicesMax {
		return badRequest("run workload %q: %d devices, want at most %d", work.Name, len(work.Devices), devicesMax)
	}
	if s.options.Devices == nil {
		return nil
	}
	for _, d := range work.Devices {
		known := slices.ContainsFunc(s.options.Devices, func(o load.Device) bool {
			// A rehearsal names the size that the scenario says, from which its extents are scaled down to this disk.
			return o.Name == d.Name && o.Path == d.Path && (d.SizeBytes <= o.SizeBytes || work.Scale.Factor != 0)
		})
		if !known {
			return &diag.Error{
				Code: codeForeignDevice, Exit: diag.ExitRefused,
				Message: fmt.Sprintf("run workload %q: device %q is none of this VM's disks", work.Name, d.Name),
			}
		}
	}
	return nil
}

// task finds a task for a request and refuses the request otherwise.
func (s *Server) task(w http.ResponseWriter, r *http.Request) *task {
	s.mu.Lock()
	t := s.tasks[r.PathValue("id")]
	s.mu.Unlock()
	if t == nil {
		refuse(w, http.StatusNotFound, &diag.Error{
			Code: codeUnknownLoad, Message: "the agent does not know this workload", Exit: diag.ExitInternal,
		})
	}
	return t
}

func (s *Server) acknowledge(w http.ResponseWriter, r *http.Request, fence uint64) {
	through, err := strconv.ParseInt(r.URL.Query().Get("through"), 10, 64)
	if err != nil {
		refuse(w, http.StatusBadRequest, badRequest("read through: %v", err))
		return
	}
	s.at("agent.acknowledge")
	s.change(w, r, fence, func(t *task) { t.acknowledge(through) })
}

func (s *Server) stopTask(w http.ResponseWriter, r *http.Request, fence uint64) {
	s.at("agent.stop")
	s.change(w, r, fence, func(t *task) { t.cancel() })
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request, fence uint64) {
	s.at("agent.remove")
	err := s.whenFenced(fence, func() error {
		// A workload that runs is stopped and stays until it has ended: its generator still holds devices.
		if t := s.tasks[r.PathValue("id")]; t != nil {
			t.cancel()
			if !t.health().Running {
				s.drop(t.id)
			}
		}
		return nil
	})
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// stream writes records from the sequence that the client asks for until the end record. It ends early when the
// client goes away; nothing is lost by that.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	next, err := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	if err != nil || next < 0 {
		refuse(w, http.StatusBadRequest, badRequest("read from: want a sequence number"))
		return
	}
	t := s.task(w, r)
	if t == nil {
		return
	}
	s.at("agent.stream")
	w.Header().Set("Content-Type", linesType)
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	heartbeat := time.NewTicker(heartbeatEvery)
	defer heartbeat.Stop()
	for {
		b := t.from(next)
		next = b.next
		if writeBatch(w, b) != nil || control.Flush() != nil || b.end != nil {
			return
		}
		if len(b.texts) > 0 {
			s.at("agent.batch")
			continue
		}
		select {
		case <-b.changed:
		case <-heartbeat.C:
			if _, err := io.WriteString(w, "\n"); err != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

func writeBatch(w io.Writer, b batch) error {
	if b.lost != nil {
		if err := json.NewEncoder(w).Encode(record{Lost: b.lost}); err != nil {
			return err
		}
	}
	for _, text := range b.texts {
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	if b.end != nil {
		return json.NewEncoder(w).Encode(record{End: b.end})
	}
	return nil
}

func (s *Server) health() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := Health{
		Boot: s.boot, UptimeNanos: s.uptime().Nanoseconds(), BufferedBytes: s.buffered.Load(),
		LoadsRemaining: tasksMax - len(s.tasks), Workloads: []TaskHealth{},
	}
	for _, id := range s.order {
		h.Workloads = append(h.Workloads, s.tasks[id].health())
	}
	return h
}
