package kube

import (
	"encoding/pem"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

func writePEM(t testing.TB, path string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// hasten shortens how long the target waits for the cluster.
func hasten(t target.Target) {
	var base *Target
	switch one := t.(type) {
	case *Target:
		base = one
	case targetWithSnapshots:
		base = one.Target
	}
	base.operations.pods.limits = limits{start: 20 * time.Second, unschedulable: time.Second, image: time.Second, stop: 20 * time.Second, look: 100 * time.Millisecond}
	base.builder.claims.bindMax, base.builder.claims.look = 10*time.Second, 500*time.Millisecond
}

// wantCode expects an error with a code and a part of its text.
func wantCode(t *testing.T, err error, code, text string) {
	t.Helper()
	var known *diag.Error
	if !errors.As(err, &known) || known.Code != code || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %s: %s", err, code, text)
	}
}
