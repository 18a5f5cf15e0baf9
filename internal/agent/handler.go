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
	mux.HandleFunc("PUT /v1/workloads/{id}", s.fenced(s.start))
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

// fenced lets a request through only when no controller with a higher fencing counter was seen.
func (s *Server) fenced(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fence, err := strconv.ParseUint(r.Header.Get(fenceHeader), 10, 64)
		if err != nil {
			refuse(w, http.StatusBadRequest, badRequest("read header %s: %v", fenceHeader, err))
			return
		}
		s.mu.Lock()
		stale := fence < s.fence
		s.fence = max(s.fence, fence)
		s.mu.Unlock()
		if stale {
			refuse(w, http.StatusConflict, &diag.Error{
				Code: codeStaleFence, Message: "another run has taken over this agent", Exit: diag.ExitLocked,
			})
			return
		}
		next(w, r)
	}
}

// start is idempotent by the id, so that a controller that lost the reply may ask again.
func (s *Server) start(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if !validID(id) {
		refuse(w, http.StatusBadRequest, badRequest("read workload: bad id"))
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, workloadBytesMax))
	if err != nil {
		refuse(w, http.StatusBadRequest, badRequest("read workload: %v", err))
		return
	}
	var work load.Workload
	if err := json.Unmarshal(text, &work); err != nil {
		refuse(w, http.StatusBadRequest, badRequest("read workload: %v", err))
		return
	}
	t, err := s.admit(id, work)
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
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
}

// admit starts the workload unless one with this id is known already.
func (s *Server) admit(id string, work load.Workload) (*task, error) {
	generator, ok := s.options.Generators[work.Generator]
	if !ok {
		return nil, badRequest("run workload %q: no generator %q here", work.Name, work.Generator)
	}
	if err := s.checkDevices(work); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
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
	t := newTask(id, work, s.options.BufferFor, &s.buffered)
	ctx, cancel := context.WithCancel(s.ctx)
	t.cancel = cancel
	s.tasks[id] = t
	s.order = append(s.order, id)
	s.running.Go(func() {
		defer cancel()
		s.noteTask(work, "preparing", nil)
		t.run(ctx, generator, s.meter, s.noteTask)
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

func (s *Server) acknowledge(w http.ResponseWriter, r *http.Request) {
	through, err := strconv.ParseInt(r.URL.Query().Get("through"), 10, 64)
	if err != nil {
		refuse(w, http.StatusBadRequest, badRequest("read through: %v", err))
		return
	}
	if t := s.task(w, r); t != nil {
		t.acknowledge(through)
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *Server) stopTask(w http.ResponseWriter, r *http.Request) {
	if t := s.task(w, r); t != nil {
		t.cancel()
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A workload that runs is stopped and stays until it has ended: its generator still holds devices.
	if t := s.tasks[r.PathValue("id")]; t != nil {
		t.cancel()
		if !t.health().Running {
			s.drop(t.id)
		}
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
		Boot: s.boot, UptimeNanos: time.Since(s.started).Nanoseconds(), BufferedBytes: s.buffered.Load(),
		LoadsRemaining: tasksMax - len(s.tasks), Workloads: []TaskHealth{},
	}
	for _, id := range s.order {
		h.Workloads = append(h.Workloads, s.tasks[id].health())
	}
	return h
}
