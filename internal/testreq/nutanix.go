package testreq

import (
	"os"
	"path/filepath"
	"testing"
)

// NutanixPython returns a Python with Nutanix's SDKs for version 4 of Prism's API, which "make deps" installs at $BRAGG_NTNX_VENV.
func NutanixPython(t testing.TB) string {
	t.Helper()
	folder := os.Getenv("BRAGG_NTNX_VENV")
	if folder == "" {
		folder = "/var/cache/bragg/ntnx"
	}
	if installed, err := filepath.Glob(filepath.Join(folder, "lib", "python3*", "site-packages", "ntnx_dataprotection_py_client")); err != nil || len(installed) == 0 {
		Skip(t, "Nutanix's SDKs are not in "+folder+" (make deps-nutanix installs them)")
	}
	return filepath.Join(folder, "bin", "python")
}
