print("stallctl")
