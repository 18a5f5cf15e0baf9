package iojob_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/fio/fioreport"
	"github.com/braggdev/bragg/internal/fio/iojob"
	"github.com/braggdev/bragg/internal/interval"
	"github.com/braggdev/bragg/internal/stat"
	"github.com/braggdev/bragg/internal/testreq"
)

// fioServer starts a server of fio on this machine and returns its port.
func fioServer(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testreq.Program(t, "fio"), fmt.Sprintf("--server=ip:127.0.0.1,%d", port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The server forks; its children bear the port in their command line.
		for _, line := range testreq.ProcessesNaming(t, fmt.Sprintf("--server=ip:127.0.0.1,%d", port)) {
			id, _, _ := strings.Cut(line, " ")
			_ = exec.Command("kill", "-9", id).Run()
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			_ = conn.Close()
			return port
		}
	}
	t.Fatal("fio's server does not listen")
	return 0
}

// clientsOf runs jobs as if on two hosts.
func clientsOf(t *testing.T, text string) *fioreport.Clients {
	t.Helper()
	c := &fioreport.Clients{Done: true, Started: time.Now()}
	for host := range 2 {
		_, file := parse(t, t.TempDir(), text)
		report, err := iojob.Run(t.Context(), file.Jobs(), iojob.Options{Host: host})
		if err != nil {
			t.Fatal(err)
		}
		c.Hosts = append(c.Hosts, fioreport.Client{Name: fmt.Sprint("host", host), Address: "127.0.0.1", Port: 22 + host, Report: report})
	}
	return c
}

// The document has exactly the keys of fio's client, those under bragg aside, but for percentiles of the sum, which fio lacks.
func TestClientsJSONHasFioKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("needs servers of fio")
	}
	t.Parallel()
	theirs := t.TempDir()
	text, _ := parse(t, theirs, mixed)
	path := filepath.Join(theirs, "job.fio")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"--output-format=json"}
	for range 2 {
		args = append(args, fmt.Sprintf("--client=ip:127.0.0.1,%d", fioServer(t)), path)
	}
	out, err := exec.Command("fio", args...).Output()
	if err != nil {
		t.Fatalf("fio: %v\n%s", err, out)
	}
	out = out[max(0, bytes.IndexByte(out, '{')):]
	var b bytes.Buffer
	clients := clientsOf(t, mixed)
	_, file := parse(t, theirs, mixed)
	if err := clients.WriteJSON(&b, labels(file)); err != nil {
		t.Fatal(err)
	}
	var got, want struct {
		Top   map[string]any
		Stats []map[string]any `json:"client_stats"`
		Disks []map[string]any `json:"disk_util"`
	}
	if err := errors.Join(json.Unmarshal(b.Bytes(), &got), json.Unmarshal(out, &want), json.Unmarshal(b.Bytes(), &got.Top), json.Unmarshal(out, &want.Top)); err != nil {
		t.Fatal(err)
	}
	if len(got.Stats) != 5 || got.Stats[4]["jobname"] != want.Stats[len(want.Stats)-1]["jobname"] {
		t.Fatalf("%d rows, fio has %d", len(got.Stats), len(want.Stats))
	}
	compare := func(what string, got, want any, dropped string) {
		gotKeys, wantKeys := map[string]bool{}, map[string]bool{}
		keysOf(got, "", gotKeys)
		keysOf(want, "", wantKeys)
		drop := regexp.MustCompile(dropped)
		maps.DeleteFunc(gotKeys, func(k string, _ bool) bool { return drop.MatchString(k) })
		maps.DeleteFunc(wantKeys, func(k string, _ bool) bool { return drop.MatchString(k) })
		for k := range wantKeys {
			if !gotKeys[k] {
				t.Errorf("%s: we lack %s", what, k)
			}
		}
		for k := range gotKeys {
			if !wantKeys[k] {
				t.Errorf("%s: fio has no %s", what, k)
			}
		}
	}
	compare("document", got.Top, want.Top, `^/(client_stats|disk_util)`)
	compare("row", got.Stats[0], want.Stats[0], `/percentile/`)
	compare("All clients", got.Stats[4], want.Stats[len(want.Stats)-1], `/percentile/`)
	if len(want.Disks) > 0 && len(got.Disks) > 0 {
		compare("disk", got.Disks[0], want.Disks[0], `^$`)
	}
}

// Rows of several hosts are merged from counts: histograms, windows, periods.
func TestClientsAreMerged(t *testing.T) {
	clients := clientsOf(t, "[global]\ndirectory=@\nsize=1m\nioengine=psync\n[a]\nrw=read\nbs=4k\n[b]\nstonewall\nrw=write\nbs=64k\n")
	var b bytes.Buffer
	if err := clients.WriteJSON(&b, fioreport.Labels{}); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Stats []struct {
			Read, Write struct {
				Total   uint64 `json:"total_ios"`
				Bytes   uint64 `json:"io_bytes"`
				Runtime int64  `json:"runtime"`
				Latency struct {
					Count      uint64            `json:"N"`
					Percentile map[string]uint64 `json:"percentile"`
				} `json:"clat_ns"`
			}
		} `json:"client_stats"`
		Bragg struct {
			Jobs []struct {
				Name   string `json:"jobname"`
				Hosts  int
				Spread map[string]any
				Read   struct {
					Total uint64 `json:"total_ios"`
				}
			}
		}
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	var reads stat.Histogram
	for _, h := range clients.Hosts {
		reads.Merge(h.Report.Rows[0].Directions[interval.Read].Service)
	}
	all := doc.Stats[len(doc.Stats)-1]
	if all.Read.Total != 512 || all.Read.Bytes != 2<<20 || all.Write.Total != 32 || all.Read.Latency.Count != 512 {
		t.Errorf("all %+v", all)
	}
	for p, v := range all.Read.Latency.Percentile {
		var q float64
		if _, err := fmt.Sscan(p, &q); err != nil {
			t.Fatal(err)
		}
		if want := uint64(reads.Quantile(q / 100)); v != want {
			t.Errorf("p%s is %d, of the merged histogram %d", p, v, want)
		}
	}
	if jobs := doc.Bragg.Jobs; len(jobs) != 2 || jobs[0].Name != "a" || jobs[0].Read.Total != 512 || jobs[1].Read.Total != 0 || jobs[0].Hosts != 2 ||
		len(jobs[0].Spread) != 1 || jobs[1].Spread["write"] == nil {
		t.Errorf("jobs %+v", doc.Bragg.Jobs)
	}
}

// With nothing to show, a report is still a document.
func TestClientsWithoutReports(t *testing.T) {
	c := &fioreport.Clients{Started: time.Now(), Hosts: []fioreport.Client{{Name: "a", Err: errors.New("gone")}, {Name: "b"}}}
	var b bytes.Buffer
	if err := errors.Join(c.WriteText(&b), c.WriteTerse(&b, fioreport.Terse{}), c.WriteJSON(&b, fioreport.Labels{})); err != nil {
		t.Fatal(err)
	}
	if err := c.Failed(); err == nil || !strings.Contains(b.String(), "missing") || !strings.Contains(b.String(), "gone") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
