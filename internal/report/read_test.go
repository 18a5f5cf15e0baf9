package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/report"
	"github.com/braggdev/bragg/internal/report/document"
	"github.com/braggdev/bragg/internal/report/draw"
	"github.com/braggdev/bragg/internal/result"
)

// held is a bundle in memory whose parts can be broken.
type held struct {
	run                           *document.Run
	summaryErr, planErr, eventErr error
}

func (h held) Manifest() result.Manifest        { return h.run.Manifest }
func (h held) Summary() (result.Summary, error) { return h.run.Summary, h.summaryErr }
func (h held) Plan() (json.RawMessage, error)   { return h.run.Plan, h.planErr }
func (h held) Events() iter.Seq2[interval.Event, error] {
	return func(yield func(interval.Event, error) bool) {
		for i, e := range h.run.Events {
			if h.eventErr != nil && i == 3 {
				yield(interval.Event{}, h.eventErr)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func TestReadSurvivesDamage(t *testing.T) {
	run, err := document.Read(held{run: exampleRun()})
	if err != nil || len(run.Events) != len(exampleRun().Events) || len(run.Summary.Caveats) != 1 {
		t.Fatalf("a whole bundle: %d events, caveats %v, %v", len(run.Events), run.Summary.Caveats, err)
	}
	run, err = document.Read(held{run: exampleRun(), planErr: errors.New("not JSON"), eventErr: errors.New("bad line")})
	if err != nil || len(run.Events) != 3 || len(run.Summary.Caveats) != 3 {
		t.Errorf("a damaged bundle: %d events, caveats %v, %v", len(run.Events), run.Summary.Caveats, err)
	}
	if _, err = document.Read(held{run: exampleRun(), summaryErr: fmt.Errorf("read: %w", fs.ErrNotExist)}); err != nil {
		t.Errorf("a bundle without a summary: %v", err)
	}
	if _, err = document.Read(held{run: exampleRun(), summaryErr: errors.New("damaged")}); err == nil {
		t.Error("a damaged summary is accepted")
	}
}

func TestRendererByName(t *testing.T) {
	for _, r := range report.Renderers() {
		if r.Summary == "" || r.Doc == "" || r.Extension == "" {
			t.Errorf("renderer %q lacks a part", r.Name)
		}
		if got, err := report.RendererByName(r.Name); err != nil || got.Name != r.Name {
			t.Errorf("renderer %q is found as %q, %v", r.Name, got.Name, err)
		}
	}
	_, err := report.RendererByName("jsn")
	var e *diag.Error
	if !errors.As(err, &e) || e.ExitCode() != diag.ExitUsage || e.Hint != "did you mean json?" {
		t.Errorf("an unknown format: %v", err)
	}
	if _, err := report.RendererByName("nothing like it"); !errors.As(err, &e) || !strings.Contains(e.Hint, "html, terminal") {
		t.Errorf("an unknown format: %v", err)
	}
}

// noSpace is a disk without space.
type noSpace struct{}

func (noSpace) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestRenderersReportWriteErrors(t *testing.T) {
	for _, r := range report.Renderers() {
		err := r.Render(noSpace{}, exampleRun(), report.Options{})
		if err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%s on a full disk: %v", r.Name, err)
		}
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{75_712, "IOPS", "75.7k IOPS"}, {950, "IOPS", "950 IOPS"}, {999_600, "IOPS", "1.00M IOPS"}, {0, "IOPS", "0 IOPS"},
		{212e6, "B/s", "212 MB/s"}, {1.5, "kB/s", "1.50 kB/s"}, {2400, "MHz", "2.40 GHz"}, {24400, "MB", "22.7 GiB"},
		{1.53e6, "ns", "1.53 ms"}, {87_000, "ns", "87.0 µs"}, {0, "ns", "0 s"}, {12, "ns", "12.0 ns"}, {65e9, "ns", "65.0 s"},
		{1536, "B", "1.50 KiB"}, {0.00123, "", "0.00123"}, {-3, "errors", "−3 errors"}, {17.5, "%", "17.5 %"},
	} {
		if got := draw.Quantity(c.value, c.unit); got != c.want {
			t.Errorf("%v %s is printed as %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

// TestEmptyListsAreLists: a program that reads the JSON form meets [] and never null where it expects a list.
func TestEmptyListsAreLists(t *testing.T) {
	var b bytes.Buffer
	if err := document.JSON(&b, &document.Run{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"findings", "caveats", "reduced", "imitated", "phases", "windows", "marks", "results", "workloads", "steps",
		"method", "command_line", "events"} {
		if !strings.Contains(b.String(), fmt.Sprintf("%q: [", name)) {
			t.Errorf("%q is not a list in %s", name, b.String())
		}
	}
}
