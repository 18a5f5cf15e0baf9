package contract_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/braggdev/bragg/internal/diag"
	"github.com/braggdev/bragg/internal/target"
)

func writePEM(t testing.TB, path string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantCode expects an error with a code and a part of its text.
func wantCode(t *testing.T, err error, code, text string) {
	t.Helper()
	var known *diag.Error
	if !errors.As(err, &known) || known.Code != code || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want %s: %s", err, code, text)
	}
}

func specs(nodes []target.NodeConfig, n int, disks ...int64) []target.VMSpec {
	list := make([]target.VMSpec, n)
	for i := range list {
		list[i] = target.VMSpec{
			Name: fmt.Sprintf("OLTP-%04d", i+1), Group: "OLTP", Ordinal: i, Template: "any", VCPUs: 1, RAMBytes: 64 << 20, DiskBytes: disks,
			NodeID: nodes[i%len(nodes)].ID,
		}
	}
	return list
}
