package prism

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/braggdev/bragg/internal/durable"
)

// Certificate reads the certificate and key of an emulator from a file, so that target files with its fingerprint stay valid, or makes one there. It
// replaces one that is about to expire.
func Certificate(path string) (tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(path, path)
	if err == nil && c.Leaf != nil && time.Until(c.Leaf.NotAfter) > 24*time.Hour {
		return c, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return c, fmt.Errorf("read the certificate of the emulator: %w", err)
	}
	if c, err = selfSigned(); err != nil {
		return c, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return c, err
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	return c, durable.WriteFile(path, text, 0o600)
}
