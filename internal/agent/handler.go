package agent

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/braggdev/bragg/internal/agent/wire"
	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/load"
)

// Bounds of what an agent keeps.
const (
	workloadBytesMax = 4 << 20 // a job file has at most 1 MiB
	tasksMax         = 64      // started and not yet forgotten
	bufferBytesMax   = 256 << 20
	bufferForDefault = 20 * time.Minute
	bufferCountMin   = 1200    // intervals
	bufferCountMax   = 200_000 // intervals
	heartbeatEvery   = 5 * time.Second
)

// Codes of errors.
const (
	codeStaleFence    = "agent-stale-fence"
	codeBadRequest    = "agent-bad-request"
	codeBusy          = "agent-busy"
	codeForeignDevice = "agent-foreign-device"
	codeMisbehaved    = "agent-generator-misbehaved"
	codeNoIdentity    = "agent-no-identity"
)

// Handler returns the operations of the server, for any transport.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/hello", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.hello()) })
	mux.HandleFunc("GET /v1/health", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.health()) })
	mux.HandleFunc("GET /v1/log", s.serveLog)
	mux.HandleFunc("GET /metrics", s.meter.expose)
	mux.HandleFunc("PUT /v1/workloads/{id}", s.fenced(s.prepare))
	mux.HandleFunc("POST /v1/workloads/{id}/start", s.fenced(s.start))
	mux.HandleFunc("POST /v1/workloads/{id}/split", s.fenced(s.split))
	mux.HandleFunc("GET /v1/workloads/{id}/intervals", s.stream)
	mux.HandleFunc("POST /v1/workloads/{id}/acknowledge", s.fenced(s.acknowledge))
	mux.HandleFunc("POST /v1/workloads/{id}/stop", s.fenced(s.stopTask))
	mux.HandleFunc("DELETE /v1/workloads/{id}", s.fenced(s.remove))
	return mux
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", wire.JSONType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, err error) { reply(w, status, wire.ToError(err)) }

func badRequest(format string, args ...any) error {
	return &diag.Error{Code: codeBadRequest, Message: fmt.Sprintf(format, args...), Exit: diag.ExitInternal}
}

// fenced lets a request through only when no controller with a higher fencing counter was seen. Handlers check again, under the
// lock, before they change anything: a controller may be stopped between the first byte of its request and the last.
func (s *Server) fenced(next func(http.ResponseWriter, *http.Request, uint64)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fence, err := strconv.ParseUint(r.Header.Get(wire.FenceHeader), 10, 64)
		if err != nil {
			refuse(w, http.StatusBadRequest, badRequest("read header %s: %v", wire.FenceHeader, err))
			return
		}
		if err := s.workloads.whenFenced(fence, func() error { return nil }); err != nil {
			refuse(w, http.StatusConflict, err)
			return
		}
		next(w, r, fence)
	}
}

// prepare is idempotent by the id, so that a controller that lost the reply may ask again.
func (s *Server) prepare(w http.ResponseWriter, r *http.Request, fence uint64) {
	id := r.PathValue("id")
	if !wire.ValidID(id) {
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
	err = s.workloads.whenFenced(fence, func() error { t, err = s.workloads.admit(id, o); return err })
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
	hold bool   // until the start request
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
	o.hold = query.Get(wire.HoldKey) == "1"
	if text := query.Get(wire.ZeroKey); text != "" {
		zero, err := strconv.ParseInt(text, 10, 64)
		if err != nil || zero > wire.UptimeMax || zero < -wire.UptimeMax {
			return o, badRequest("read %s: out of bounds", wire.ZeroKey)
		}
		o.zero = &zero
	}
	return o, nil
}

// start lets a held workload go. It is idempotent: the first moment counts.
func (s *Server) start(w http.ResponseWriter, r *http.Request, fence uint64) {
	at, err := readUptime(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	s.at("agent.start")
	s.change(w, r, fence, func(t *task) { t.startAt(at) })
}

// split ends the interval of a running workload at a time.
func (s *Server) split(w http.ResponseWriter, r *http.Request, fence uint64) {
	at, err := readUptime(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	if t := s.task(w, r); t == nil {
		return
	} else if err := s.workloads.whenFenced(fence, func() error { return t.split(r.Context(), at) }); err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func readUptime(r *http.Request) (time.Duration, error) {
	at, err := strconv.ParseInt(r.URL.Query().Get(wire.AtKey), 10, 64)
	if err != nil || at > wire.UptimeMax || at < -wire.UptimeMax {
		return 0, badRequest("read %s: out of bounds", wire.AtKey)
	}
	return time.Duration(at), nil
}

// change does something to a task of a controller that holds the lease.
func (s *Server) change(w http.ResponseWriter, r *http.Request, fence uint64, do func(t *task)) {
	t := s.task(w, r)
	if t == nil {
		return
	}
	if err := s.workloads.whenFenced(fence, func() error { do(t); return nil }); err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// task finds a task for a request and refuses the request otherwise.
func (s *Server) task(w http.ResponseWriter, r *http.Request) *task {
	t := s.workloads.find(r.PathValue("id"))
	if t == nil {
		refuse(w, http.StatusNotFound, &diag.Error{
			Code: wire.CodeUnknownLoad, Message: "the agent does not know this workload", Exit: diag.ExitInternal,
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
	err := s.workloads.whenFenced(fence, func() error {
		// A workload that runs is stopped and stays until it has ended: its generator still holds devices.
		if t := s.workloads.byID[r.PathValue("id")]; t != nil {
			t.cancel()
			if !t.health().Running {
				s.workloads.drop(t.id)
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
	w.Header().Set("Content-Type", wire.LinesType)
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
		if err := json.NewEncoder(w).Encode(wire.Record{Lost: b.lost}); err != nil {
			return err
		}
	}
	for _, text := range b.texts {
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	if b.end != nil {
		return json.NewEncoder(w).Encode(wire.Record{End: b.end})
	}
	return nil
}

func (s *Server) health() wire.Health {
	known := s.workloads.health()
	return wire.Health{
		Boot: s.boot, UptimeNanos: s.uptime().Nanoseconds(), BufferedBytes: s.buffered.Load(),
		LoadsRemaining: tasksMax - len(known), Workloads: known,
	}
}
