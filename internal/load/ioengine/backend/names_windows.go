package backend

import "os"

func statFile(path string) error {
	_, err := os.Stat(path)
	return err
}
