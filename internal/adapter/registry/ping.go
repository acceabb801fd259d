package registry

import "context"

// Ping checks whether a registry responds, without credentials. A registry that requires
// credentials passes too.
func (c *Client) Ping(ctx context.Context, name string) error {
	what := "ping of " + name
	h, err := c.host(name, what)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.meet(ctx, h, what)
}
