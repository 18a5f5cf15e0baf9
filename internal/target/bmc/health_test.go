package bmc

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/target"
)

func TestHealthOfCommands(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for name, c := range map[string]struct {
		command []string
		want    Answer
		said    string
	}{
		"recovered":   {[]string{script("ok", "echo checking; echo HEALTH_OK")}, Yes, "HEALTH_OK"},
		"degraded":    {[]string{script("bad", "echo HEALTH_WARN >&2; exit 3")}, No, "HEALTH_WARN"},
		"missing":     {[]string{filepath.Join(dir, "nowhere")}, Unknown, "no such file"},
		"no shell":    {[]string{script("args", `test "$1" = '$(reboot)'`), "$(reboot)"}, Yes, ""},
		"much to say": {[]string{script("long", "head -c 100000 /dev/zero | tr '\\0' x")}, Yes, "xxx"},
	} {
		got, said := askHealth(t.Context(), target.Health{Command: c.command})
		if got != c.want || !strings.Contains(said, c.said) || len(said) > 1000 {
			t.Errorf("%s: got %v, %q", name, got, said)
		}
	}
}

func TestHealthOfQueries(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		want   Answer
	}{
		"recovered":  {200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0"]}]}}`, Yes},
		"degraded":   {200, `{"status":"success","data":{"resultType":"vector","result":[]}}`, No},
		"a scalar":   {200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`, Unknown},
		"refused":    {400, `{"status":"error","error":"parse error"}`, Unknown},
		"a page":     {200, `<html>`, Unknown},
		"nothing":    {500, ``, Unknown},
		"null":       {200, `null`, Unknown},
		"no result":  {200, `{"status":"success","data":{"resultType":"vector","result":null}}`, No},
		"elsewhere":  {302, ``, Unknown},
		"endless":    {200, strings.Repeat(" ", 2<<20) + `{"status":"success"}`, Unknown},
		"wrong kind": {200, `{"status":"success","data":{"resultType":"vector","result":{"a":1}}}`, Unknown},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/v1/query" || r.URL.Query().Get("query") != "ceph_health_status == 0" {
				t.Errorf("%s: asked for %s", name, r.URL)
			}
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		got, said := askHealth(t.Context(), target.Health{Prometheus: server.URL, Query: "ceph_health_status == 0"})
		server.Close()
		if got != c.want {
			t.Errorf("%s: got %v, %q", name, got, said)
		}
	}
	if got, _ := askHealth(t.Context(), target.Health{Prometheus: "http://127.0.0.1:1", Query: "x"}); got != Unknown {
		t.Errorf("no BMC there: got %v", got)
	}
}

func TestRedundancyOfBoth(t *testing.T) {
	for _, c := range []struct{ provider, check, want Answer }{
		{Yes, Yes, Yes}, {Unknown, Yes, Yes}, {No, Yes, No}, {Yes, No, No}, {Unknown, No, No}, {Yes, Unknown, Unknown}, {No, Unknown, No},
	} {
		if got, said := redundancy(c.provider, "a", c.check, "b"); got != c.want || said != "a; b" {
			t.Errorf("%v and %v: got %v, %q", c.provider, c.check, got, said)
		}
	}
}
