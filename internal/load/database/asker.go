package database

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/braggdev/bragg/internal/load/program"
)

// Asker asks a server the same question again and again, over one connection of a client that reads statements and prints one line for
// each answer. Only one goroutine uses it.
type Asker struct {
	process *program.Process
	query   string
	in      *os.File
	answers chan string
	waiting bool      // for an answer
	at      time.Time // of the last answer
}

// firstAnswerMax bounds the wait for the first answer.
const firstAnswerMax = 10 * time.Second

// Ask starts the client and waits for the first answer. What the client complains about goes to said.
func Ask(ctx context.Context, client program.Command, query string, said io.Writer) (a *Asker, first string, err error) {
	stdin, write, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	defer stdin.Close()
	read, stdout, err := os.Pipe()
	if err != nil {
		_ = write.Close()
		return nil, "", err
	}
	defer stdout.Close()
	client.Stdin, client.Stdout, client.Stderr = stdin, stdout, said
	a = &Asker{query: query, in: write, answers: make(chan string, 1)}
	if a.process, err = client.Start(); err != nil {
		_, _ = write.Close(), read.Close()
		return nil, "", fmt.Errorf("start the client that asks for counters: %w", err)
	}
	go a.listen(read)
	a.ask()
	ctx, cancel := context.WithTimeout(ctx, firstAnswerMax)
	defer cancel()
	select {
	case line, open := <-a.answers:
		if first, a.waiting = line, false; !open {
			err = io.ErrUnexpectedEOF
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		a.Close()
		return nil, "", fmt.Errorf("ask the server for its counters: %w", err)
	}
	return a, first, nil
}

// listen passes on answers until the program ends.
func (a *Asker) listen(r *os.File) {
	defer close(a.answers)
	defer func() { _ = r.Close() }()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		a.answers <- lines.Text()
	}
}

func (a *Asker) ask() {
	if _, err := a.in.WriteString(a.query); err == nil {
		a.waiting = true
	}
}

// Begin starts the time of the first period.
func (a *Asker) Begin() { a.at = time.Now() }

// Look returns an answer if one has come since the last call, with the time since the one before, and asks again after a period. After
// the client has ended, answers are empty.
func (a *Asker) Look(period time.Duration) (answer string, passed time.Duration, fresh bool) {
	select {
	case line, open := <-a.answers:
		if a.waiting = false; !open {
			return "", 0, true
		}
		answer, passed, fresh = line, time.Since(a.at), true
		a.at = time.Now()
	default:
	}
	if !a.waiting && time.Since(a.at) >= period {
		a.ask()
	}
	return answer, passed, fresh
}

// Close ends the connection.
func (a *Asker) Close() {
	_ = a.in.Close()
	stop := program.Stopper{Process: a.process, Signal: os.Interrupt, Grace: time.Second}
	stop.Begin()
	for range a.answers { // so that listen ends
	}
	_ = a.process.Wait()
	stop.End()
}

// ReadCounters reads an answer of whole numbers, separated by "|", into values. It has as many.
func ReadCounters(line string, values []float64) error {
	fields := strings.Split(line, "|")
	if len(fields) != len(values) {
		return fmt.Errorf("%d fields, want %d: %.80q", len(fields), len(values), line)
	}
	for i, text := range fields {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return fmt.Errorf("field %d: %.80q", i+1, line)
		}
		values[i] = float64(n)
	}
	return nil
}

// Answer asks once more and waits for the answer. It is not mixed with Look.
func (a *Asker) Answer(ctx context.Context) (string, error) {
	for asked := false; ; {
		if !a.waiting && !asked {
			a.ask()
			asked = true
		}
		if !a.waiting {
			return "", io.ErrUnexpectedEOF
		}
		select {
		case line, open := <-a.answers:
			if a.waiting = false; !open {
				return "", io.ErrUnexpectedEOF
			}
			if asked { // else it answers a question whose caller has given up
				return line, nil
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
