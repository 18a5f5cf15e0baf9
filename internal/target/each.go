package target

import (
	"context"
	"errors"
	"sync"
)

// eachMax bounds how many VMs one call of a provider processes concurrently.
const eachMax = 8

// Each calls do with every index below n, several concurrently, and returns all errors. It starts no call after ctx has
// ended.
func Each(ctx context.Context, n int, do func(i int) error) error {
	errs := make([]error, n)
	slots := make(chan struct{}, eachMax)
	var all sync.WaitGroup
	for i := range n {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			errs[i] = context.Cause(ctx)
			break
		}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
