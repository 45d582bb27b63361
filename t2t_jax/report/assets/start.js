startTheme();
startNavigation();
startCharts();
startSamples();
startAttention();
