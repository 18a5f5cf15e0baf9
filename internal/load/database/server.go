package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/load"
	"github.com/braggdev/bragg/internal/load/program"
	"github.com/braggdev/bragg/internal/wait"
)

// Server is the process of a server, with what all kinds of servers need for it.
type Server struct {
	Name     string // of its program: "postgres"
	Room     *program.Room
	Endpoint program.Endpoint
	Said     *program.Transcript // commands and what they printed

	process *program.Process // nil unless it runs
	log     *program.Transcript
	wrong   func(line string) bool
	why     *reasons // by the log
}

// logBytesMax bounds what is kept of the server's log.
const logBytesMax = 64 << 10

// NewServer returns a server that does not run yet. A line of its log for which wrong returns true is an error, or belongs to one.
func NewServer(name string, said *program.Transcript, wrong func(line string) bool) Server {
	return Server{Name: name, Said: said, log: program.NewTranscript(logBytesMax), wrong: wrong}
}

// RunKept runs a command to its end and keeps what it prints.
func (s *Server) RunKept(ctx context.Context, c program.Command) (string, error) {
	fmt.Fprintf(s.Said, "$ %s\n", c)
	out, err := c.Run(ctx)
	if err != nil {
		fmt.Fprintf(s.Said, "%s\n%v\n", out, err)
		return "", s.Conceal(err)
	}
	fmt.Fprint(s.Said, out)
	return strings.TrimSpace(out), nil
}

// Conceal replaces settings of an endpoint in an error.
func (s *Server) Conceal(err error) error { return s.Endpoint.ConcealError(err) }

// Explain completes an error of a client: by the end of the server, if that was the cause, or by the errors in its log, and without settings of an
// endpoint.
func (s *Server) Explain(err error) error {
	if s.process != nil {
		select {
		case <-s.process.Done():
			err = fmt.Errorf("%s ended: %w%s: %w", s.Name, cmp.Or(s.process.Wait(), errEndedByItself), s.why.quoted(), err)
		case <-time.After(answerEvery):
			if text := s.why.errors(); text != "" {
				err = fmt.Errorf("%w; the log of %s%s", err, s.Name, text)
			}
		}
	}
	return s.Conceal(err)
}

var errEndedByItself = errors.New("without an error")

// Bounds of waiting for a server.
const (
	startMax    = 10 * time.Minute // it may have to recover after a power cut
	stopMax     = 30 * time.Second // for its last checkpoint; then it is killed, and the next start recovers
	answerEvery = 50 * time.Millisecond
)

// Start starts the server and waits until a question gets an answer.
func (s *Server) Start(ctx context.Context, command, question program.Command) error {
	s.why = newReasons(s.wrong)
	log := io.MultiWriter(s.log, s.why) // Redis writes its log to standard output
	command.Stdout, command.Stderr = log, log
	fmt.Fprintf(s.Said, "$ %s\n", command)
	process, err := command.Start()
	if err != nil {
		return fmt.Errorf("start %s: %w", s.Name, err)
	}
	s.process = process
	ctx, cancel := context.WithTimeout(ctx, startMax)
	defer cancel()
	for {
		if _, err := question.Run(ctx); err == nil {
			s.why.running()
			return nil
		}
		select {
		case <-process.Done():
			return fmt.Errorf("%s ended: %w%s", s.Name, cmp.Or(process.Wait(), errEndedByItself), s.why.quoted())
		default:
		}
		if err := wait.For(ctx, answerEvery); err != nil {
			return fmt.Errorf("wait for %s: %w%s", s.Name, err, s.why.quoted())
		}
	}
}

// Ended is closed when the server has ended; it is nil unless it was started.
func (s *Server) Ended() <-chan struct{} {
	if s.process == nil {
		return nil
	}
	return s.process.Done()
}

// While returns a context that ends with the server: some clients try to connect again forever.
func (s *Server) While(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := s.Ended()
	go func() {
		select {
		case <-ended:
			cancel(errors.New("its client was stopped"))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// ID is the id of its process, 0 unless it runs.
func (s *Server) ID() int {
	if s.process == nil {
		return 0
	}
	return s.process.ID()
}

// StopBy ends the server by a signal, with a last checkpoint if there is time.
func (s *Server) StopBy(signal os.Signal) {
	if s.process == nil {
		return
	}
	stop := program.Stopper{Process: s.process, Signal: signal, Grace: stopMax}
	stop.Begin()
	_ = s.process.Wait()
	stop.End()
	s.process = nil
}

// Release lets other loads use the data.
func (s *Server) Release() error {
	err := s.Room.Close()
	s.Room = nil
	return err
}

// Outputs are what the generator kept, under a name, and the server's log.
func (s *Server) Outputs(name string) []load.Output {
	list := []load.Output{{Name: name, Text: s.Endpoint.Conceal(s.Said.String())}}
	if text := s.log.String(); text != "" {
		list = append(list, load.Output{Name: s.Name + ".log", Text: text})
	}
	return list
}
