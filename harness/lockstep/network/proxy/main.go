// The proxy server of Lockstep: Toxiproxy's, with a flow of our own in each direction of every proxy.
//
// It is controlled by Toxiproxy's HTTP API, so Toxiproxy's own tools work with it.
package main

import (
	"flag"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

const requestTimeout = 30 * time.Second

func main() {
	host := flag.String("host", "localhost", "where the API listens")
	port := flag.String("port", "8474", "where the API listens")
	flag.Parse()

	logger := zerolog.New(os.Stdout).Level(zerolog.ErrorLevel).With().Timestamp().Logger()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), logger)
	toxics.Register(flowType, new(Flow))

	api := &http.Server{
		Addr:              net.JoinHostPort(*host, *port),
		Handler:           withFlows(server),
		ReadHeaderTimeout: requestTimeout,
	}
	logger.Fatal().Err(api.ListenAndServe()).Msg("the API has ended")
}

// withFlows is Toxiproxy's API, with flows in every proxy before the request that made it is answered.
func withFlows(server *toxiproxy.ApiServer) http.Handler {
	router := server.Routes()
	router.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			next.ServeHTTP(response, request)
			if request.Method != http.MethodPost {
				return
			}
			for _, proxy := range server.Collection.Proxies() {
				if err := addFlows(proxy); err != nil {
					server.Logger.Err(err).Str("proxy", proxy.Name).Msg("no flows")
				}
			}
		})
	})
	return router
}
