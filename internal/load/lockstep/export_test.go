package lockstep

import "bytes"

// Cut breaks the connection as a power cut does, but that it is noticed at once.
func (m *Member) Cut() {
	close(m.stop)
	_ = m.conn.NetConn().Close()
	m.all.Wait()
}

// Jump leaves out a step.
func (m *Member) Jump() { m.step++ }

// Encode returns a frame as it is sent.
func Encode(kind byte, number uint64, values []float64, text string) []byte {
	return frame{kind: kind, number: number, values: values, text: text}.append(nil)
}

// Decode reads a frame, and returns it as it would be sent.
func Decode(data []byte) ([]byte, error) {
	f, err := readFrame(bytes.NewReader(data))
	return f.append(nil), err
}
